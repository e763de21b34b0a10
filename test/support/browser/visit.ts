import assert from 'node:assert/strict';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { collectingLog, type LogLine } from '../log.ts';
import { startTestService, type TestService } from '../server.ts';
import { Recording } from './recording.ts';
import { type Site, startSite } from './site.ts';

/** A timeout that even a busy machine does not reach. */
const PATIENCE_MS = 120_000;

/** How a page is rendered. */
export interface Look {
  /** Default: true. */
  javaScript?: boolean;
  /** In CSS pixels. Default: 1280. */
  width?: number;
  /** Default: light. */
  colorScheme?: 'light' | 'dark';
  /** True to accept any certificate, such as the tests' own. */
  anyCertificate?: boolean;
}

/** The browser as seen by one test. What it recorded is checked at the end of the test. */
export class Visit {
  readonly #browser: Browser;
  readonly #origins = new Set<string>();
  readonly #recording = new Recording(this.#origins);
  readonly #secrets: string[] = [];
  readonly #expected: RegExp[] = [];
  readonly #logs: (readonly LogLine[])[] = [];
  readonly #ends: (() => Promise<void>)[] = [];

  constructor(browser: Browser) {
    this.#browser = browser;
  }

  /** Starts a service with its own store, which is stopped with the test. Its log must not contain secrets either. */
  async serve(options: Omit<Parameters<typeof startTestService>[0] & object, 'log'> = {}): Promise<TestService> {
    const { log, lines } = collectingLog();
    const service = await startTestService({ ...options, log });
    this.#logs.push(lines);
    this.#ends.push(() => service.stop());
    this.#origins.add(service.url);
    return service;
  }

  /**
   * Starts a third-party site and allows requests to it, as a client's site or an attacker's.
   * @param host 127.0.0.2 for a site that browsers treat as cross-site
   */
  async site(html = '<!doctype html><title>Another site</title>', host = '127.0.0.1'): Promise<Site> {
    const site = await startSite(html, host);
    this.#ends.push(() => site.stop());
    this.#origins.add(site.url);
    return site;
  }

  /** Allows requests to an origin that the test started, and stops it with the test. */
  started(origin: string, stop: () => Promise<void>): void {
    this.#ends.push(stop);
    this.#origins.add(origin);
  }

  /** A fresh browser profile: no cookies, no storage, no history. */
  async context({
    javaScript = true,
    width = 1280,
    colorScheme = 'light',
    anyCertificate,
  }: Look = {}): Promise<BrowserContext> {
    const context = await this.#browser.newContext({
      javaScriptEnabled: javaScript,
      viewport: { width, height: 800 },
      colorScheme,
      ignoreHTTPSErrors: anyCertificate ?? false,
      reducedMotion: 'reduce',
      locale: 'en-US',
      timezoneId: 'UTC',
    });
    context.setDefaultTimeout(PATIENCE_MS);
    this.#ends.unshift(() => context.close());
    this.#recording.follow(context);
    return context;
  }

  /** Opens a page, in a new context unless one is given. */
  async open(url: string, look: Look | BrowserContext = {}): Promise<Page> {
    const context = 'newPage' in look ? look : await this.context(look);
    const page = await context.newPage();
    await this.#recording.ready();
    await page.goto(url);
    return page;
  }

  /** Makes the test fail if this text is found anywhere readable, even before this call. @returns the secret */
  isSecret(secret: string): string {
    this.#secrets.push(secret);
    return secret;
  }

  /**
   * Expects an event that otherwise fails the test. The test also fails if it does not happen.
   * @param trouble matches its line, such as `status 404: GET http://127.0.0.1:4000/device`
   */
  expectTrouble(trouble: RegExp): void {
    this.#expected.push(trouble);
  }

  /** The unwanted events. */
  get troubles(): readonly string[] {
    return this.#recording.troubles.filter((line) => !this.#expected.some((expected) => expected.test(line)));
  }

  /** Fails if an unwanted event happened, or a secret is exposed. */
  async check(): Promise<void> {
    await this.#recording.finish();
    assert.deepEqual(this.troubles, [], 'the browser had trouble');
    for (const expected of this.#expected)
      assert.ok(
        this.#recording.troubles.some((line) => expected.test(line)),
        `${expected} did not happen`,
      );
    const logged = this.#logs.flat().map((line) => ({ where: 'the log of the server', text: JSON.stringify(line) }));
    const readable = [...this.#recording.traces, ...logged].filter(({ text }) =>
      this.#secrets.some((secret) => text.includes(secret)),
    );
    assert.deepEqual(readable, [], 'a secret can be read');
  }

  /** Closes and stops everything that the test opened. */
  async end(): Promise<void> {
    for (const end of this.#ends) await end();
  }
}
