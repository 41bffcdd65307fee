import { describe, expect, it } from "vitest";
import { lineBeyondWheels } from "./wheel-lock.js";

const hash = `--hash=sha256:${"0a".repeat(32)}`;

describe("a lock that comes from elsewhere", () => {
  it.each([
    ["nothing", ""],
    ["what uv writes", `idna==3.10 \\\n    ${hash} \\\n    ${hash}\n    # via requests\n`],
    ["a marker and extras", `tqdm[notebook, slack]==4.66.1 ; python_version < '3.13' and sys_platform != "win-32" ${hash}\r\n`],
    ["a local version", `torch==2.3.0+cpu ${hash}\n`],
    ["options that take nothing back", `--require-hashes\n--only-binary :all:\nidna==3.10 ${hash}\n`],
  ])("may have %s", (_, text) => {
    expect(lineBeyondWheels(text)).toBeNull();
  });

  it.each([
    ["a package by its address", `evil @ https://example.org/evil.tar.gz ${hash}`],
    ["an address behind another line break", `# harmless\u2028evil @ https://example.org/evil.tar.gz ${hash}`],
    ["an address behind a form feed", `# harmless\fevil @ https://example.org/evil.tar.gz ${hash}`],
    ["an address behind a carriage return", `# harmless\revil @ https://example.org/evil.tar.gz ${hash}`],
    ["an encoding of its own", `# -*- coding: utf-7 -*-\nidna==3.10 ${hash}`],
    ["leave to build all", "--no-binary :all:"],
    ["leave to build all, abbreviated behind another option", "--require-hashes --no-bin :all:"],
    ["leave to build all, over two lines", `--require-hashes --no-bin\\\nary :all:\nidna==3.10 ${hash}`],
    ["what takes wheels alone back", "--only-binary :none:"],
    ["leave for one package", "--only-binary idna"],
    ["an option of a package", `idna==3.10 --config-settings=a=b ${hash}`],
    ["a variable of this machine", `idna==$\{HOME} ${hash}`],
    ["a folder", "./evil"],
  ])("may not have %s", (_, text) => {
    expect(lineBeyondWheels(`idna==3.10 ${hash}\n${text}\n`)).not.toBeNull();
  });
});
