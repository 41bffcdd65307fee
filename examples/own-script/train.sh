#!/bin/sh
# A program with two settings. What counts is the line "score: …".
width=3
depth=2
echo "score: $((100 - (width - 7) * (width - 7) - (depth - 4) * (depth - 4)))"
