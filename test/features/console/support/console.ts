import assert from 'node:assert/strict';
import type { Principal } from '../../../../src/keys/authorization/principal.ts';
import { tokenAt } from '../../../../src/features/sessions/cookies.ts';
import { SeenOrigin } from '../../../../src/features/sessions/index.ts';
import { createPrincipal } from '../../../support/keys.ts';
import { startTestService, type TestService } from '../../../support/server.ts';

/** A page in a browser without scripts. */
export interface ConsolePage {
  readonly status: number;
  readonly headers: Headers;
  readonly html: string;
  /** The visible text, in one line. */
  readonly text: string;
  /** Its path below `/console/`. */
  readonly path: string;
}

/** A form of a page. */
interface Form {
  readonly action: string;
  readonly method: string;
  readonly fields: [string, string][];
}

export function startConsoleService(options: Parameters<typeof startTestService>[0] = {}): Promise<TestService> {
  return startTestService({ ...options, app: { console: true, ...options.app } });
}

/** A browser without scripts: it keeps cookies, follows redirects, and submits the forms of its page. */
export class Visitor {
  readonly #url: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #cookies = new Map<string, string>();
  /** The current page. */
  page: ConsolePage | undefined;

  /** @param headers additional headers for all requests */
  constructor(url: string, headers: Record<string, string> = {}) {
    this.#url = url;
    this.#headers = headers;
  }

  /** The session cookie, if there is one. */
  get cookie(): string | undefined {
    const pair = Array.from(this.#cookies).find(([name]) => name.endsWith('svc_api_session'));
    return pair?.join('=');
  }

  /** The token in the session cookie. */
  get token(): string {
    return tokenAt(new SeenOrigin(this.#url), /=([\w-]+)/.exec(this.cookie!)![1]!);
  }

  set cookie(cookie: string | undefined) {
    this.#cookies.clear();
    if (cookie !== undefined) this.keep(cookie);
  }

  /** All cookies, as a `Cookie` header. */
  get cookies(): string {
    return Array.from(this.#cookies, (pair) => pair.join('=')).join('; ');
  }

  /** A browser with the same cookies, on this or another server. */
  twin(url = this.#url): Visitor {
    const twin = new Visitor(url, this.#headers);
    for (const [name, value] of this.#cookies) twin.#cookies.set(name, value);
    twin.page = this.page;
    return twin;
  }

  /** Stores a cookie from a `Set-Cookie` header. */
  keep(cookie: string): void {
    const [, name = '', value = ''] = /^([^=;]*)=([^;]*)/.exec(cookie) ?? [];
    if (cookie.includes('Max-Age=0')) this.#cookies.delete(name);
    else this.#cookies.set(name, value);
  }

  /** Opens a page. @param path below `/console/` */
  open(path: string): Promise<ConsolePage> {
    return this.#go(new URL(`console/${path}`, `${this.#url}/`));
  }

  /** Signs in with the secret of a key. */
  async signIn(secret: string): Promise<ConsolePage> {
    await this.open('sign-in');
    return this.submit('sign-in', { key: secret });
  }

  /**
   * Submits the first form on the page whose address contains a text.
   * @param given replaces values of fields: a list sends several values, undefined omits the field
   */
  submit(action: string, given: Record<string, string | string[] | undefined> = {}): Promise<ConsolePage> {
    assert.ok(this.page, 'no page is open');
    const here = new URL(`console/${this.page.path}`, `${this.#url}/`);
    const form = formsIn(this.page.html).find((one) => one.action.includes(action));
    assert.ok(form, `the page has no form to ${action}: ${this.page.html}`);
    const fields = new URLSearchParams([
      ...form.fields.filter(([name]) => !(name in given)),
      ...Object.entries(given).flatMap(([name, value]) =>
        [value ?? []].flat().map((one): [string, string] => [name, one]),
      ),
    ]);
    const to = new URL(form.action, here);
    if (form.method === 'post') return this.#go(to, fields);
    to.search = fields.toString();
    return this.#go(to);
  }

  /** Follows the first link with a matching address. @param upTo stops before a matching redirect */
  async follow(address: RegExp, { upTo }: { upTo?: RegExp } = {}): Promise<ConsolePage> {
    assert.ok(this.page, 'no page is open');
    const links = Array.from(this.page.html.matchAll(/<a[^>]*\shref="([^"]*)"/g), ([, href]) => unescape(href!));
    const link = links.find((href) => address.test(href));
    assert.ok(link !== undefined, `the page has no link to ${String(address)}: ${this.page.html}`);
    const here = new URL(`console/${this.page.path}`, `${this.#url}/`);
    return this.#go(new URL(link, here), undefined, upTo);
  }

  async #go(to: URL, body?: URLSearchParams, upTo?: RegExp): Promise<ConsolePage> {
    if (upTo?.test(to.href)) {
      const path = to.href.slice(`${this.#url}/console/`.length);
      return { status: 0, headers: new Headers(), html: '', text: '', path };
    }
    const response = await fetch(to, {
      redirect: 'manual',
      headers: {
        'sec-fetch-site': 'same-origin',
        ...(this.#cookies.size > 0 && { cookie: this.cookies }),
        ...this.#headers,
      },
      ...(body && { method: 'POST', body }),
    });
    for (const cookie of response.headers.getSetCookie()) this.keep(cookie);
    const location = response.headers.get('location');
    if (location !== null) {
      await response.body?.cancel();
      return this.#go(new URL(location, to), undefined, upTo);
    }
    const html = await response.text();
    const root = `${this.#url}/console/`;
    const path = to.href.startsWith(root) ? to.href.slice(root.length) : `..${to.href.slice(this.#url.length)}`;
    this.page = { status: response.status, headers: response.headers, html, text: textOf(html), path };
    return this.page;
  }
}

/** A visitor who has signed in with a new key. */
export async function visitorWith(
  test: TestService,
  fields: Parameters<typeof createPrincipal>[1],
): Promise<{ visitor: Visitor; secret: string; principal: Principal }> {
  const { secret, principal } = await createPrincipal(test.keys, fields);
  const visitor = new Visitor(test.url);
  await visitor.signIn(secret);
  return { visitor, secret, principal };
}

function textOf(html: string): string {
  const [, body = ''] = html.split('<body');
  return unescape(
    body
      .replace(/^[^>]*>/, '')
      .replaceAll(/<[^>]*>/g, ' ')
      .replaceAll(/\s+/g, ' '),
  ).trim();
}

function unescape(text: string): string {
  const characters: Record<string, string> = { lt: '<', gt: '>', quot: '"', '#39': "'", amp: '&' };
  return text.replaceAll(/&(lt|gt|quot|#39|amp);/g, (_, name: string) => characters[name]!);
}

/** The forms of a page with the values that a browser would send, without those of buttons. */
function formsIn(html: string): Form[] {
  return Array.from(html.matchAll(/<form([^>]*)>(.*?)<\/form>/gs), ([, head = '', content = '']) => ({
    action: attributeOf(head, 'action') ?? '',
    method: attributeOf(head, 'method') ?? 'get',
    fields: [...inputsIn(content), ...selectsIn(content), ...textsIn(content)],
  }));
}

function inputsIn(content: string): [string, string][] {
  return Array.from(content.matchAll(/<input([^>]*)>/g), ([, tag = '']) => tag)
    .filter((tag) => !/type="(checkbox|radio)"/.test(tag) || /\schecked/.test(tag))
    .flatMap((tag): [string, string][] => {
      const name = attributeOf(tag, 'name');
      const isOn = /type="(checkbox|radio)"/.test(tag);
      return name === undefined ? [] : [[name, attributeOf(tag, 'value') ?? (isOn ? 'on' : '')]];
    });
}

function selectsIn(content: string): [string, string][] {
  return Array.from(content.matchAll(/<select([^>]*)>(.*?)<\/select>/gs)).flatMap(([, tag = '', options = '']) => {
    const name = attributeOf(tag, 'name');
    const all = Array.from(options.matchAll(/<option([^>]*)>/g), ([, option = '']) => option);
    const chosen = all.find((option) => /\sselected/.test(option)) ?? all[0];
    return name === undefined || chosen === undefined
      ? []
      : [[name, attributeOf(chosen, 'value') ?? ''] as [string, string]];
  });
}

function textsIn(content: string): [string, string][] {
  return Array.from(content.matchAll(/<textarea([^>]*)>(.*?)<\/textarea>/gs)).flatMap(([, tag = '', text = '']) => {
    const name = attributeOf(tag, 'name');
    return name === undefined ? [] : [[name, unescape(text)] as [string, string]];
  });
}

function attributeOf(tag: string, name: string): string | undefined {
  const value = new RegExp(`\\s${name}="([^"]*)"`).exec(tag)?.[1];
  return value === undefined ? undefined : unescape(value);
}
