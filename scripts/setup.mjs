#!/usr/bin/env node
// Everything that a fresh clone on a fresh machine needs. Plain Node.js without dependencies, because it runs before any
// of them are installed. Each step looks first and works only where something is missing, so running it again costs nothing.
import { build } from "./set-up/build.mjs";
import { installNpmPackages } from "./set-up/npm-packages.mjs";
import { runAsMain } from "./set-up/step.mjs";
import { installSystemPackages, proveSandbox } from "./set-up/system-packages.mjs";
import { provideUv } from "./set-up/uv.mjs";

export function setUp() {
  installNpmPackages();
  installSystemPackages();
  proveSandbox();
  provideUv();
  build();
}

runAsMain(import.meta.url, setUp);
