#!/usr/bin/env node
// src/ → dist/, always. Set-up builds too, but only when the sources have changed.
import { build } from "./set-up/build.mjs";
import { runAsMain } from "./set-up/step.mjs";

runAsMain(import.meta.url, () => build({ always: true }));
