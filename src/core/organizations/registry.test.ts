import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { organizationNamed, organizationNames, sessionOrganizations } from "./registry.js";

describe("what organizations say of themselves", () => {
  it("holds together: who asks nothing calls no role, and only long sessions are served from outside", () => {
    for (const name of organizationNames) {
      const { asks, roles, isServed, configure } = organizationNamed(name);
      expect([name, roles.length === 0]).toEqual([name, asks === "nothing"]);
      expect([name, isServed(configure({}))]).toEqual([name, false]);
    }
    expect(sessionOrganizations).toEqual(["sessions"]);
    const { isServed, configure } = organizationNamed("sessions");
    expect([0, 1, 3].map((sessions) => isServed(configure({ sessions })))).toEqual([true, false, false]);
  });

  it("is all that other code goes by: none compares an organization's name", () => {
    const source = join(import.meta.dirname, "../..");
    const files = readdirSync(source, { recursive: true, encoding: "utf8" }).filter((path) => path.endsWith(".ts"));
    const comparing = files.filter((path) => /organization\??\.name\s*[!=]==/.test(readFileSync(join(source, path), "utf8")));
    expect(comparing).toEqual([]);
  });
});
