import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { breaksOff, longestAnswer, plainFile, plainSentence, readJson } from "./tolerant-json.js";

const answer = { plan: { hypothesis: "it helps" }, files: [{ path: "a.py", content: 'print("<think>{}")\n' }] };
const json = JSON.stringify(answer);
const read = (text: string): unknown => readJson(text, ["plan", "files"]);

describe("an answer of a language model", () => {
  it.each([
    ["bare", json],
    ["in a fence", `\`\`\`json\n${json}\n\`\`\``],
    ["in prose", `Sure! Here it is:\n${json}\nI hope it helps {really}.`],
    ["after a thought", `<think>maybe {"plan": 1}? no</think>${json}`],
    ["after a thought without a beginning", `maybe {"plan": 1}? no</think>\n${json}`],
    ["before a thought without an end", `${json}<think>and now {"plan": 2}`],
    ["in a leaked tool call", `<tool_call>{"name": "answer"}</tool_call><|im_start|>${json}<|im_end|>`],
    ["with a byte order mark", `\uFEFF${json}`],
  ])("is read when it comes %s", (_how, text) => {
    expect(read(text)).toEqual(answer);
  });

  it("may have trailing commas and line breaks inside its texts", () => {
    expect(read('{"plan": {"hypothesis": "a\nb",}, "files": [{"path": "a", "content": "x, }\t",},],}')).toEqual({
      plan: { hypothesis: "a\nb" },
      files: [{ path: "a", content: "x, }\t" }],
    });
  });

  it.each([
    ["nothing", ""],
    ["prose", "I am sorry, I cannot help with that."],
    ["a list", "[1, 2]"],
    ["a cut-off object", json.slice(0, -4)],
    ["a text of more than the longest answer", `${json}${" ".repeat(longestAnswer)}`],
  ])("is not read out of %s", (_what, text) => {
    expect(read(text)).toBeUndefined();
  });

  it("is known to break off when it was cut, wherever that is", () => {
    for (let length = json.indexOf("{") + 1; length < json.length; length++) {
      expect(breaksOff(json.slice(0, length))).toBe(true);
      expect(read(json.slice(0, length))).toBeUndefined();
    }
    for (const whole of [json, `Here: ${json} Well {`, "no object"]) expect(breaksOff(whole)).toBe(false);
  });

  it("is read whatever prose stands around it", () => {
    const prose = fc.string({ maxLength: 80 }).filter((text) => !/["{}[\]<>\\]/.test(text));
    fc.assert(
      fc.property(prose, prose, fc.jsonValue({ maxDepth: 4 }), (before, after, value) => {
        expect(read(`${before}${JSON.stringify({ plan: value })}${after}`)).toEqual(JSON.parse(JSON.stringify({ plan: value })));
      }),
    );
  });

  it("never throws, and ends soon on what never closes", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom("{", "}", '"', "\\", "[", "]", ",", "a"), maxLength: 200 }), (text) => {
        expect(() => read(text)).not.toThrow();
      }),
    );
    expect(read('{"a":'.repeat(500_000))).toBeUndefined();
  });
});

describe("a field of an answer", () => {
  it("is a sentence without thoughts and markup", () => {
    expect(plainSentence("<think>hm</think> Use <tool_call>fewer</tool_call> trees<|im_end|>")).toBe("Use fewer trees");
    expect(plainSentence("a < b and c > d, List<int>")).toBe("a < b and c > d, List<int>");
  });

  it("is a file without the fence around it and the tokens after it", () => {
    expect(plainFile("```python\nx = 1\n```")).toBe("x = 1\n");
    expect(plainFile("<think>so</think>\nx = 1\n<|im_end|>")).toBe("x = 1\n");
    expect(plainFile("x = 1\n</tool_call>")).toBe("x = 1\n");
  });

  it("takes time in proportion to its length, whatever blanks it holds", () => {
    const blanks = "\n".repeat(2_000_000);
    expect(plainFile(`x = 1${blanks}y = 2\n`)).toHaveLength(blanks.length + 11);
    expect(plainFile(`x = 1${blanks}<|im_end|>`)).toBe("x = 1\n");
  });

  it("keeps a file that holds fences and tokens of its own", () => {
    const own = "text\n```python\nx = 1\n```\nmore <|im_end|> <think> here\n";
    expect(plainFile(own)).toBe(own);
    const two = "```\na\n```\n\n```\nb\n```\n";
    expect(plainFile(two)).toBe(two);
  });
});
