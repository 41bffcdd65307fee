import { defineConfig } from "vitest/config";

const seconds = 1000;

/** Each kind of test with the patience that it deserves; `requireAssertions` makes a test that checks nothing fail. */
export default defineConfig({
  test: {
    expect: { requireAssertions: true },
    pool: "forks",
    maxWorkers: 2,
    projects: [
      {
        extends: true,
        test: { name: "unit", include: ["src/**/*.test.ts"], testTimeout: 120 * seconds, hookTimeout: 60 * seconds },
      },
      {
        extends: true,
        test: { name: "integration", include: ["tests/integration/**/*.test.ts"], testTimeout: 300 * seconds, hookTimeout: 120 * seconds },
      },
      {
        extends: true,
        test: { name: "e2e", include: ["tests/e2e/**/*.test.ts"], testTimeout: 300 * seconds, hookTimeout: 300 * seconds },
      },
    ],
    coverage: { provider: "v8", include: ["src/**/*.ts"], exclude: ["src/**/*.test.ts"], reportsDirectory: "coverage" },
  },
});
