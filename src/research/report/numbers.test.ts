import { describe, expect, it } from "vitest";
import { bytes, count, coverage, duration, money, percent, range, signed, significant } from "./numbers.js";

describe("numbers for people", () => {
  it.each([
    [0, "0"],
    [0.5, "0.5"],
    [0.512345678, "0.51235"],
    [123456.7, "123457"],
    [-0.000123456, "-0.00012346"],
    [0.00000123456, "1.2346e-6"],
    [1e-9, "1e-9"],
    [5e20, "5e20"],
    [0.1 + 0.2, "0.3"],
    [null, "-"],
    [Number.NaN, "-"],
    [Number.POSITIVE_INFINITY, "-"],
  ])("writes %s as %s", (value, text) => {
    expect(significant(value)).toBe(text);
  });

  it("gives a difference its sign", () => {
    expect([signed(0.01234), signed(-0.01234), signed(0), signed(null)]).toEqual(["+0.0123", "-0.0123", "0", "-"]);
    expect(percent(8.712)).toBe("+8.71 %");
  });

  it.each([
    [0, "0 ms"],
    [850, "850 ms"],
    [12_340, "12.3 s"],
    [59_949, "59.9 s"],
    [59_990, "1 min"],
    [250_000, "4 min 10 s"],
    [3_599_999, "1 h"],
    [7_500_000, "2 h 5 min"],
    [270_000_000, "3 d 3 h"],
    [null, "-"],
  ])("writes %s ms as %s", (ms, text) => {
    expect(duration(ms)).toBe(text);
  });

  it("writes money, counts and sizes", () => {
    expect([money(0), money(1.2), money(0.00123)]).toEqual(["$0.00", "$1.20", "$0.0012"]);
    expect([count(950), count(12_345), count(4_560_000)]).toEqual(["950", "12.3k", "4.56M"]);
    expect([bytes(0), bytes(1023), bytes(12_595), bytes(2 ** 32)]).toEqual(["0 B", "1023 B", "12.3 KiB", "4 GiB"]);
  });

  it("writes an interval with open ends, and what it covers", () => {
    expect([range(1, 2), range(1, null), range(null, 2), range(null, null)]).toEqual(["1 to 2", "at least 1", "at most 2", "not known"]);
    expect(coverage(0.05)).toBe("90 %");
  });
});
