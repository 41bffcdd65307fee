import { describe, expect, it } from "vitest";
import { fenced, markdown, markdownCode, oneLine, printable, shorten, tsvText } from "./hostile-text.js";

describe("hostile text", () => {
  it("makes control, reordering and hidden characters visible", () => {
    expect(printable("a\u001b[2Jb\u202ec\u200bd\ud800e")).toBe("a\\u{1b}[2Jb\\u{202e}c\\u{200b}d\\u{d800}e");
    expect(printable("tab\tand\r\nline")).toBe("tab\tand\nline");
  });

  it("stays on one line and in its width", () => {
    expect(oneLine(" a\n\n b\tc ")).toBe("a b c");
    expect(shorten("abcdef", 4)).toBe("abc…");
    expect(shorten("😀😀😀", 3)).toBe("😀😀😀");
  });

  it("cannot forge a row, a tag, a link or a mention of Markdown", () => {
    const text = markdown("a | b\n<script>alert(1)</script> [x](http://e.test) ![i](u) `c` *d* @team #1");
    expect(text).not.toMatch(/(?<!\\)[|`*[\]]|(?<![\\&])#|[<>@\n]|:\/\//);
    expect(markdown("- item")).toBe("\\- item");
    expect(markdown("1. item")).toBe("1\\. item");
  });

  it("cannot end inline code or a fence", () => {
    expect(markdownCode("a`b|c")).toBe("`a'b¦c`");
    expect(markdownCode("")).toBe("` `");
    expect(fenced("````\nx")).toBe("`````\n````\nx\n`````");
  });

  it("keeps a TSV row a row, and starts no formula", () => {
    expect(tsvText("a\tb\nc\\d\r")).toBe("a\\tb\\nc\\\\d\\r");
    expect(tsvText("=HYPERLINK(1)")).toBe("'=HYPERLINK(1)");
  });
});
