# Does the baseline's work four times, and leaves the result for the next trial.
result = work(4)
leave(result)
(OUTPUT / "result.txt").write_text(result)
