import type { Browser, LaunchOptions } from 'playwright-core';
import { pathOf } from '../skip.ts';

let launched: Promise<Browser> | undefined;

/** The browser that all tests of this process share: headless Chromium from Debian. */
export function theBrowser(): Promise<Browser> {
  return (launched ??= launch());
}

/** Closes the browser of this process, if there is one. */
export async function closeBrowser(): Promise<void> {
  const browser = await launched;
  launched = undefined;
  await browser?.close();
}

/**
 * A browser with a back/forward cache, as users have. Other tests do without it: Playwright waits for the load event of
 * a restored page, which never comes.
 */
export function launchWithMemory(): Promise<Browser> {
  return launch({ ignoreDefaultArgs: ['--disable-back-forward-cache'] });
}

/** A browser that resolves hosts to TLS ports of this machine. @param sites the port of each host */
export function launchWithSites(sites: Readonly<Record<string, number>>): Promise<Browser> {
  const found = Object.entries(sites).map(([host, port]) => `MAP ${host} 127.0.0.1:${port}`);
  return launch({ args: [resolving(...found)] });
}

/** Keeps the browser off the network: no other host resolves. */
function resolving(...rules: readonly string[]): string {
  return `--host-resolver-rules=${[...rules, 'MAP * ~NOTFOUND', 'EXCLUDE 127.0.0.1', 'EXCLUDE 127.0.0.2'].join(' , ')}`;
}

async function launch(options: LaunchOptions = {}): Promise<Browser> {
  const { chromium } = await import('playwright-core');
  return chromium.launch({
    executablePath: pathOf('chromium')!,
    // Chromium's sandbox refuses to work for root.
    chromiumSandbox: process.getuid?.() !== 0,
    args: [resolving()],
    ...options,
  });
}
