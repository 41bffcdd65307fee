# Works four times as long as the baseline, but once for all seeds, if it finds what it left.
result = found()
if result is None:
    result = work(4)
    leave(result)
(OUTPUT / "result.txt").write_text(result)
