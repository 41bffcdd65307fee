begun = time.perf_counter()
(OUTPUT / "result.txt").write_text(work())
print(f"seconds: {time.perf_counter() - begun:.6f}")
