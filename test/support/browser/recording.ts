import type { BrowserContext, CDPSession, Page, Request } from 'playwright-core';

/** A text that others can read, and where it was found. */
export interface Trace {
  readonly where: string;
  readonly text: string;
}

/**
 * Redundant messages. The response itself is recorded already. The second message depends on a race between the
 * browser, which restores the focus, and `autofocus`.
 */
const SAYS_NOTHING =
  /^Failed to load resource: the server responded with a status of|^Autofocus processing was blocked because a document already has a focused element/;

/** Playwright's types of requests that a page can abort. Icons are "image" or "other". */
const BELONGS_TO_PAGES = new Set(['image', 'other', 'script', 'stylesheet']);

/**
 * Records faults, and places that expose secrets, during a test. Nothing is injected into the pages, so that they are
 * the same as for users, also without JavaScript.
 */
export class Recording {
  /** The unwanted events, one a line. */
  readonly troubles: string[] = [];
  readonly traces: Trace[] = [];
  readonly #origins: ReadonlySet<string>;
  readonly #contexts: BrowserContext[] = [];
  readonly #sessions = new Map<Page, Promise<CDPSession>>();

  /** @param origins allowed targets of requests */
  constructor(origins: ReadonlySet<string>) {
    this.#origins = origins;
  }

  /** Records a context that has no pages yet. */
  follow(context: BrowserContext): void {
    this.#contexts.push(context);
    context.on('page', (page) => this.#sessions.set(page, this.#followPage(context, page)));
    context.on('console', (message) => {
      this.#trace('a console message', message.text());
      if (!SAYS_NOTHING.test(message.text()))
        this.troubles.push(`console ${message.type()}: ${message.text()} (${message.location().url})`);
    });
    context.on('weberror', (error) => this.troubles.push(`page error: ${error.error().stack}`));
    context.on('request', (request) => this.#request(request));
    context.on('requestfailed', (request) => {
      const error = request.failure()?.errorText;
      if (error === 'net::ERR_ABORTED' && BELONGS_TO_PAGES.has(request.resourceType())) return;
      this.troubles.push(`failed: ${request.method()} ${request.url()}: ${error}`);
    });
    context.on('response', (response) => {
      if (response.status() < 400) return;
      this.troubles.push(`status ${response.status()}: ${response.request().method()} ${response.url()}`);
    });
  }

  /** Waits until all open pages are recorded. Call it before navigation. */
  async ready(): Promise<void> {
    await Promise.all(this.#sessions.values());
  }

  /** Collects what the pages left behind, at the end of the test. */
  async finish(): Promise<void> {
    for (const context of this.#contexts) {
      for (const { name, value, httpOnly } of await context.cookies())
        if (!httpOnly) this.#trace('a cookie that scripts can read', `${name}=${value}`);
      for (const page of context.pages()) await this.#finishPage(page);
    }
  }

  async #followPage(context: BrowserContext, page: Page): Promise<CDPSession> {
    page.on('framenavigated', (frame) => this.#trace('the address', frame.url()));
    page.on('websocket', (socket) => this.#address(socket.url()));
    const session = await context.newCDPSession(page);
    // Issues as in the browser's developer tools: violations of policies, Trusted Types, and form issues.
    session.on('Audits.issueAdded', ({ issue: { code, details } }) =>
      this.troubles.push(`issue ${code}: ${JSON.stringify(details)}`),
    );
    for (const event of ['DOMStorage.domStorageItemAdded', 'DOMStorage.domStorageItemUpdated'] as const)
      session.on(event, ({ storageId, key, newValue }) =>
        this.#trace(storageId.isLocalStorage ? 'localStorage' : 'sessionStorage', `${key}=${newValue}`),
      );
    await session.send('Audits.enable');
    await session.send('DOMStorage.enable');
    return session;
  }

  async #finishPage(page: Page): Promise<void> {
    // Events arrive in order, so none is pending after this answer.
    const session = await this.#sessions.get(page)!;
    const { entries } = await session.send('Page.getNavigationHistory');
    for (const { url, userTypedURL, title } of entries) this.#trace('the history', `${url} ${userTypedURL} ${title}`);
    // The event of the last write comes later, from another process.
    for (const storage of ['localStorage', 'sessionStorage'])
      this.#trace(storage, await page.evaluate<string>(`try { JSON.stringify({ ...${storage} }) } catch { '' }`));
    this.#trace('window.name', await page.evaluate<string>('window.name'));
    this.#trace('history.state', await page.evaluate<string>('`${JSON.stringify(history.state)}`'));
  }

  #request(request: Request): void {
    this.#trace('the address of a request', request.url());
    this.#trace('a referrer', request.headers()['referer'] ?? '');
    this.#address(request.url());
  }

  #address(url: string): void {
    const { origin, protocol } = new URL(url.replace(/^ws/, 'http'));
    const isLocal = ['data:', 'blob:', 'about:', 'chrome-error:'].includes(protocol);
    if (!isLocal && !this.#origins.has(origin)) this.troubles.push(`other origin: ${url}`);
  }

  #trace(where: string, text: string): void {
    this.traces.push({ where, text });
  }
}
