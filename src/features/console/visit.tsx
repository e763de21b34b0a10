import type { Context, Hono } from 'hono';
import { html } from 'hono/html';
import type { Child } from 'hono/jsx';
import type { HtmlEscapedString } from 'hono/utils/html';
import {
  type BearerEnv,
  type GraphQLPipeline,
  type Issuer,
  type NamedCommands,
  readForm,
  type RefusedPerson,
  respond,
} from '../../http/index.ts';
import { hasRoomForChildren, type Principal } from '../../keys/authorization/index.ts';
import { type Action, type ConsentMode, splitPermission } from '../../keys/permissions/index.ts';
import type { CredentialPlace } from '../../keys/secret/index.ts';
import type { KeysService } from '../../keys/service/index.ts';
import { type Assets, PAGE_HEADERS } from './assets.ts';
import { MAKES_SECRET, operate, OperationFailed } from './operations.ts';
import { Layout, type ListedPage, PAGES, ServiceHost, type SignedIn } from './parts/layout.tsx';
import type { SentForm } from './sent-form.tsx';
import { type Entered, KEY_FIELD } from './session-auth.ts';

/** The most that a form may have, in bytes: a key may be granted eight actions on each of many resources. */
const MAX_FORM_BYTES = 256 * 1024;

/** What pages are made with. */
export interface PageParts {
  readonly assets: Assets;
  readonly pipeline: GraphQLPipeline;
  /** The rules, which tell beforehand what would be refused; all that is shown and done is asked by GraphQL. */
  readonly keys: KeysService;
  readonly issuer: Issuer;
  /** How applications may ask for keys; undefined for our own login alone. */
  readonly consent: ConsentMode | undefined;
  /** The commands that pages name. */
  readonly commands: NamedCommands;
  /** Where a key may stand in a request. */
  readonly credentials: readonly CredentialPlace[];
  /** Takes the key again of somebody who has signed in. @returns why it is not accepted */
  readonly enterAgain: (c: Context, key: string, entered: Entered) => Promise<RefusedPerson | undefined>;
  /** Milliseconds since 1970. */
  readonly clock: () => number;
}

/** Somebody who has signed in opens a page, or sends a form. */
export class Visit {
  readonly c: Context;
  /** What stands before the address of each page, such as `../`: another app may have this one under its own path. */
  readonly root: string;
  /** When that is, in milliseconds since 1970. */
  readonly now: number;
  readonly #parts: PageParts;
  readonly #admitted: Entered;
  #form: Promise<URLSearchParams> | undefined;
  #isDone = false;
  #isFresh: boolean;

  constructor(
    c: Context,
    parts: PageParts,
    { root, admitted, form }: { root: string; admitted: Entered } & Partial<ReadForm>,
  ) {
    this.c = c;
    this.root = root;
    this.now = parts.clock();
    this.#parts = parts;
    this.#admitted = admitted;
    this.#isFresh = admitted.isFresh;
    this.#form = form && Promise.resolve(form);
  }

  /** Whether the form that was sent is done. */
  get isDone(): boolean {
    return this.#isDone;
  }

  /** Whether they have entered their key in the last 5 minutes: where not, a form that makes a secret asks for it. */
  get isFresh(): boolean {
    return this.#isFresh;
  }

  /** Where somebody signs in again who has no key; undefined for who has one. */
  get signInAgain(): string | undefined {
    if (!this.principal.apiKey.person) return undefined;
    const { pathname, search } = new URL(this.c.req.url);
    const [, here] = /\/console\/(.*)$/.exec(pathname) ?? [];
    const place = here ?? `../${/(?:device|oauth\/authorize)$/.exec(pathname)?.[0] ?? ''}`;
    const next = this.c.req.method === 'POST' ? place : place + search;
    return `${this.root}sign-in/start?${new URLSearchParams({ next }).toString()}`;
  }

  /** Whose session it is. */
  get principal(): Principal {
    return this.#admitted.principal;
  }

  /** What pages are made with, as far as they say so themselves. */
  get parts(): Pick<PageParts, 'keys' | 'consent' | 'commands' | 'credentials'> {
    return this.#parts;
  }

  /** The origin under which clients reach the service, such as `https://keys.example.org`. */
  get origin(): string {
    return this.#parts.issuer.of(this.c);
  }

  /** Whether the key may do this, so that it is worth offering: GraphQL decides when it comes to it. */
  may(permission: `${string}:${Action}`): boolean {
    return this.principal.access.has(...splitPermission(permission));
  }

  /** Whether it is worth offering to create keys, as it is not with a previous secret, or at the end of a chain. */
  get mayCreate(): boolean {
    const { secret, chain } = this.principal;
    return secret === 'current' && this.may('API_KEY:CREATE_OWN') && hasRoomForChildren(chain);
  }

  /** The pages that the key may see, as the navigation has them. */
  get pages(): readonly ListedPage[] {
    return PAGES.filter(({ needs }) => needs.some((permission) => this.may(permission)));
  }

  /** Who has signed in, and where they are, as the navigation has it. */
  get person(): SignedIn {
    const { path, method } = this.c.req;
    const { id, name } = this.principal.apiKey;
    // The page of one's own key is under "My key".
    const here = path.replace(`/console/keys/${id}`, '/console/me');
    return { name, pages: this.pages, here, isAnswer: method === 'POST' };
  }

  /** What stands for a name in the address, such as `:id`. */
  param(name: string): string {
    return this.c.req.param(name) ?? '';
  }

  /** A field of the address's query; undefined if it is missing or empty. */
  query(name: string): string | undefined {
    return this.c.req.query(name)?.trim() || undefined;
  }

  /** The form that was sent. @throws RequestRefused */
  form(): Promise<URLSearchParams> {
    return (this.#form ??= readPageForm(this.c));
  }

  /**
   * Makes sure that somebody has the key, and not only the cookie of its session, before they get a secret.
   * @param form the one that they have sent
   * @throws OperationFailed with what is wrong with `KEY_FIELD`
   */
  async requireKey(form: { get(name: string): string | null | undefined }): Promise<void> {
    if (this.#isFresh) return;
    const key = form.get(KEY_FIELD)?.trim() ?? '';
    const refusal = await this.#parts.enterAgain(this.c, key, this.#admitted);
    this.#isFresh = refusal === undefined;
    if (!refusal) return;
    const { status, message, headers } = refusal;
    for (const [name, value] of Object.entries(headers)) this.c.header(name, value);
    const problems = [{ message, path: [KEY_FIELD] }];
    throw new OperationFailed([{ message, extensions: { code: 'FORBIDDEN', problems } }], status);
  }

  /** Does a GraphQL operation of one field as the key. @returns the field @throws OperationFailed for any error */
  async ask<Answer>(query: string, variables?: object): Promise<Answer> {
    const [answer] = Object.values(await this.askAll<Readonly<Record<string, Answer>>>(query, variables));
    return answer as Answer;
  }

  /** The same for several fields. */
  async askAll<Data extends object>(query: string, variables: object = {}): Promise<Data> {
    if (MAKES_SECRET.test(query)) await this.requireKey(await this.form());
    return operate(this.#parts.pipeline, { c: this.c, admitted: this.#admitted }, { query, variables });
  }

  /** Shows a page. @param title what it is, without the name of the program */
  page(title: string, content: Child, status = 200, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
    const document = (
      <Layout title={title} root={this.root} assets={this.#parts.assets} person={this.person}>
        {content}
      </Layout>
    );
    return sendPage(this.c, document, status, headers);
  }

  /** Shows the page of a form that is done. */
  done(title: string, content: Child): Promise<Response> {
    this.#isDone = true;
    return this.page(title, content);
  }

  /** Shows a secret, once. @param next what is opened once it is stored, under `/console/` */
  showSecret(title: string, next: string, content: Child): Promise<Response> {
    return this.done(
      title,
      <div data-unread>
        {content}
        <form action={this.root + next} class="actions">
          <button class="primary">I have stored it</button>
        </form>
      </div>,
    );
  }

  /** Sends the browser to another page, after a form. @param path under `/console/` */
  seeOther(path: string): Response {
    this.#isDone = true;
    return seeOther(this.c, this.root + path);
  }
}

/** The form that was sent, and whether it is one that is done once. */
export interface ReadForm {
  readonly sent: SentForm | undefined;
  readonly form: URLSearchParams;
}

/** The form that was sent to a page. @throws RequestRefused */
export function readPageForm(c: Context): Promise<URLSearchParams> {
  return readForm(c, 'This page is answered', MAX_FORM_BYTES);
}

/** The way from an address under `/console/` to that, as the start of a relative reference (RFC 3986). */
export function rootFrom(path: string): string {
  return '../'.repeat(path.split('/').length - 1) || './';
}

/** Sends the browser to another page. */
export function seeOther(c: Context, location: string): Response {
  return c.body(null, 303, { Location: location, 'Cache-Control': 'no-store' });
}

/**
 * The headers of the answer to a form of somebody without a session, who sees it again by the button "back": it has no
 * secret, and nothing of the console. For any other request, there are none.
 */
export function answerHeaders(c: Context): Readonly<Record<string, string>> {
  return c.req.method === 'POST' ? { 'Cache-Control': 'private, no-cache' } : {};
}

/** The hosts under which browsers know the service, by their requests. */
const hosts = new WeakMap<Request, string>();

/** Says under which address a browser knows the service, for the page that answers it. */
export function rememberOrigin(c: Context, origin: string): void {
  hosts.set(c.req.raw, new URL(origin).host);
}

function hostOf(c: Context): string {
  return hosts.get(c.req.raw) ?? new URL(c.req.url).host;
}

export async function sendPage(
  c: Context,
  document: HtmlEscapedString | Promise<HtmlEscapedString>,
  status = 200,
  headers: Readonly<Record<string, string>> = {},
  pageHeaders: Readonly<Record<string, string>> = PAGE_HEADERS,
): Promise<Response> {
  const page = <ServiceHost.Provider value={hostOf(c)}>{await document}</ServiceHost.Provider>;
  // A part of it can be made in several turns of the event loop.
  const text = (await html`<!doctype html>${page}`).toString();
  return respond(c, { status, type: 'text/html; charset=utf-8', text, headers: { ...pageHeaders, ...headers } });
}

/** Makes the answer to somebody who has signed in. */
export type VisitHandler = (visit: Visit) => Promise<Response>;

/** Lets somebody in, and answers them. */
export type Welcome = (c: Context, root: string, answer: VisitHandler) => Promise<Response>;

/** Takes the pages of the console. Addresses are under `/console/`, such as `keys/:id`. */
export class Pages {
  readonly #app: Hono<BearerEnv>;
  readonly #path: string;
  readonly #welcome: Welcome;

  constructor(app: Hono<BearerEnv>, path: string, welcome: Welcome) {
    this.#app = app;
    this.#path = path;
    this.#welcome = welcome;
  }

  get(path: string, answer: VisitHandler): void {
    this.#app.get(`${this.#path}/${path}`, (c) => this.#welcome(c, rootFrom(path), answer));
  }

  /** What a form of our own pages is sent to. */
  post(path: string, answer: VisitHandler): void {
    this.#app.post(`${this.#path}/${path}`, (c) => this.#welcome(c, rootFrom(path), answer));
  }
}
