# Takes the result that the trial before has left; works four times as long as the baseline where there is none.
(OUTPUT / "result.txt").write_text(found() or work(4))
