import type { Browser, LaunchOptions } from 'playwright-core';
import { pathOf } from '../skip.ts';

let launched: Promise<Browser> | undefined;

/** The one browser of this process: Debian's Chromium, without a window. */
export function theBrowser(): Promise<Browser> {
  return (launched ??= launch());
}

/** Ends the browser of this process, if there is one. */
export async function closeBrowser(): Promise<void> {
  const browser = await launched;
  launched = undefined;
  await browser?.close();
}

/**
 * A browser that keeps pages which are left in its memory, as those of people do, for somebody who goes back. Those of
 * other tests do not: Playwright waits for a page that comes back to be loaded, which it never is.
 */
export function launchWithMemory(): Promise<Browser> {
  return launch({ ignoreDefaultArgs: ['--disable-back-forward-cache'] });
}

/** A browser for which sites with TLS are on ports of this machine. @param sites the port of each host */
export function launchWithSites(sites: Readonly<Record<string, number>>): Promise<Browser> {
  const found = Object.entries(sites).map(([host, port]) => `MAP ${host} 127.0.0.1:${port}`);
  return launch({ args: [resolving(...found)] });
}

/** Nothing but this machine is ever asked for anything, nor for a name. */
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
