import assert from 'node:assert/strict';
import { fieldsIn } from '../features/consent/support/consent.ts';

/** A page in the browser. */
export interface ShownPage {
  status: number;
  /** The final address after redirects. */
  url: URL;
  text: string;
  headers: Headers;
}

/** A browser without scripts: it has cookies, redirects and forms, and obeys `form-action`. */
export class Browser {
  /** The cookies by name, as set by the server. Ports of a host share them, as in browsers. */
  readonly cookies = new Map<string, string>();
  readonly #seen: string[];

  /** @param seen collects each address and the text of each page */
  constructor(seen: string[] = []) {
    this.#seen = seen;
  }

  /** Opens an address, and follows redirects. */
  open(url: string | URL): Promise<ShownPage> {
    return this.#go(new URL(url), {});
  }

  /** Fills in fields of a form, presses its button, and follows redirects. */
  submit(page: ShownPage, button: string, fill: Readonly<Record<string, string>> = {}): Promise<ShownPage> {
    const { action, request } = formWith(page, button, fill);
    const policy = page.headers.get('content-security-policy') ?? '';
    const [, sources = ''] = /form-action ([^;]*)/.exec(policy) ?? [];
    const targets = sources.split(' ').map((source) => (source === "'self'" ? page.url.origin : source));
    return this.#go(action, request, targets);
  }

  /** Presses a button. @returns the address of its redirect, which is not followed */
  async leadsTo(page: ShownPage, button: string): Promise<URL> {
    const { action, request } = formWith(page, button, {});
    const { headers } = await this.#request(action, request);
    return new URL(headers.get('location')!, action);
  }

  /** @param targets allowed origins for a form and its redirects: Chromium applies the policy to both */
  async #go(url: URL, request: RequestInit, targets?: readonly string[]): Promise<ShownPage> {
    assert.ok(!targets || targets.includes(url.origin), `The policy of the page forbids ${url.origin}.`);
    const { status, headers, text } = await this.#request(url, request);
    const location = headers.get('location');
    return location === null ? { status, url, text, headers } : this.#go(new URL(location, url), {}, targets);
  }

  async #request(url: URL, request: RequestInit) {
    const cookies = Array.from(this.cookies, ([name, cookie]) => `${name}=${cookie.split(';')[0]}`).join('; ');
    const own = request.headers as Record<string, string> | undefined;
    const response = await fetch(url, { ...request, headers: { ...own, Cookie: cookies }, redirect: 'manual' });
    const { status, headers } = response;
    for (const line of headers.getSetCookie()) {
      const [, name, cookie] = /^([^=]+)=(.*)$/.exec(line)!;
      if (cookie!.includes('Max-Age=0')) this.cookies.delete(name!);
      else this.cookies.set(name!, cookie!);
    }
    const text = await response.text();
    this.#seen.push(url.href, headers.get('location') ?? '', text);
    return { status, headers, text };
  }
}

/** The form of a button, as it would be sent. */
function formWith(page: ShownPage, button: string, fill: Readonly<Record<string, string>>) {
  const label = new RegExp(`<button(?:[^>]*? name="(\\w+)" value="(\\w+)")?[^>]*>${button}</button>`);
  const forms = [...page.text.matchAll(/<form method="post" action="([^"]*)"[^>]*>(.*?)<\/form>/gs)];
  const [, target, content] = forms.find(([form]) => label.test(form)) ?? assert.fail(`No ${button}: ${page.text}`);
  const [, name, value] = label.exec(content!)!;
  const body = new URLSearchParams(fieldsIn(content!));
  for (const [field, text] of Object.entries(fill)) body.set(field, text);
  if (name !== undefined) body.set(name, value!);
  const headers = { Origin: page.url.origin, 'Sec-Fetch-Site': 'same-origin' };
  return { action: new URL(target!, page.url), request: { method: 'POST', body, headers } };
}
