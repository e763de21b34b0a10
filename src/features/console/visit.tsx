import type { Context, Hono } from 'hono';
import { html } from 'hono/html';
import type { Child } from 'hono/jsx';
import {
  type BearerEnv,
  type GraphQLPipeline,
  type Issuer,
  type NamedCommands,
  readForm,
  type PageRefusal,
  type Reply,
  respond,
} from '../../http/index.ts';
import { hasRoomForChildren, type Principal } from '../../keys/authorization/index.ts';
import { type Action, splitPermission } from '../../keys/permissions/index.ts';
import type { ConsentMode } from '../consent/modes.ts';
import type { CredentialPlace } from '../../keys/secret/index.ts';
import type { KeysService } from '../../keys/service/index.ts';
import { type Assets, PAGE_HEADERS } from './assets.ts';
import { withQuery } from './links.ts';
import { MAKES_SECRET, operate, OperationFailed } from './operations.ts';
import { type Frame, Layout, type ListedPage, PAGES, type SignedIn } from './parts/layout.tsx';
import type { SentForm } from './sent-form.tsx';
import { type Entered, KEY_FIELD } from './session-auth.ts';

/** Maximum size of a form in bytes: a key can have eight actions on each of many resources. */
const MAX_FORM_BYTES = 256 * 1024;

/** Parts of pages. */
export interface PageParts {
  readonly assets: Assets;
  readonly pipeline: GraphQLPipeline;
  /** Rules that foresee refusals. Everything shown or done goes through GraphQL. */
  readonly keys: KeysService;
  readonly issuer: Issuer;
  /** How applications can request keys; undefined for our own login only. */
  readonly consent: ConsentMode | undefined;
  /** The commands that pages name. */
  readonly commands: NamedCommands;
  /** Places in a request that can carry a key. */
  readonly credentials: readonly CredentialPlace[];
  /** Accepts the key that a signed-in person enters again. @returns the reason it was refused, if it was */
  readonly enterAgain: (c: Context, key: string, entered: Entered) => Promise<PageRefusal | undefined>;
  /** Milliseconds since 1970. */
  readonly clock: () => number;
}

/** A request of a signed-in person: a page they open, or a form they send. */
export class Visit {
  readonly c: Context;
  /** Prefix of page addresses, such as `../`: another app can mount this one under a path. */
  readonly root: string;
  /** Time of the request, in milliseconds since 1970. */
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

  /** The form that was sent is done. */
  get isDone(): boolean {
    return this.#isDone;
  }

  /** They entered their key in the last 5 minutes. Otherwise, a form that creates a secret asks for it. */
  get isFresh(): boolean {
    return this.#isFresh;
  }

  /** Address for signing in again without a key; undefined for people with a key. */
  get signInAgain(): string | undefined {
    if (!this.principal.apiKey.person) return undefined;
    const { pathname, search } = new URL(this.c.req.url);
    const [, here] = /\/console\/(.*)$/.exec(pathname) ?? [];
    const place = here ?? `../${/(?:device|oauth\/authorize)$/.exec(pathname)?.[0] ?? ''}`;
    const next = this.c.req.method === 'POST' ? place : place + search;
    return withQuery(`${this.root}sign-in/start`, { next });
  }

  /** The owner of the session. */
  get principal(): Principal {
    return this.#admitted.principal;
  }

  /** The parts that pages use directly. */
  get parts(): Pick<PageParts, 'keys' | 'consent' | 'commands' | 'credentials'> {
    return this.#parts;
  }

  /** Origin of the service for clients, such as `https://keys.example.org`. */
  get origin(): string {
    return this.#parts.issuer.of(this.c);
  }

  /** Checks a permission to decide what to offer. GraphQL decides again when it is done. */
  may(permission: `${string}:${Action}`): boolean {
    return this.principal.access.has(...splitPermission(permission));
  }

  /** Checks whether to offer creating keys: not with a previous secret, nor at the end of a chain. */
  get mayCreate(): boolean {
    const { secret, chain } = this.principal;
    return secret === 'current' && this.may('API_KEY:CREATE_OWN') && hasRoomForChildren(chain);
  }

  /** Pages in the navigation that the key can see. */
  get pages(): readonly ListedPage[] {
    return PAGES.filter(({ needs }) => needs.some((permission) => this.may(permission)));
  }

  /** The signed-in person and their place in the navigation. */
  get person(): SignedIn {
    const { path, method } = this.c.req;
    const { id, name } = this.principal.apiKey;
    // The page of one's own key is under "My key".
    const here = path.replace(`/console/keys/${id}`, '/console/me');
    return { name, pages: this.pages, here, isAnswer: method === 'POST' };
  }

  /** A parameter of the address, such as `:id`. */
  param(name: string): string {
    return this.c.req.param(name) ?? '';
  }

  /** A query parameter; undefined if missing or empty. */
  query(name: string): string | undefined {
    return this.c.req.query(name)?.trim() || undefined;
  }

  /** The form that was sent. @throws RequestRefused */
  form(): Promise<URLSearchParams> {
    return (this.#form ??= readPageForm(this.c));
  }

  /**
   * Checks that the person has the key, and not only its session cookie, before they get a secret.
   * @param form the form they sent
   * @throws OperationFailed with the problem of `KEY_FIELD`
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

  /** Runs a GraphQL operation with one field as the key. @returns the field @throws OperationFailed for any error */
  async ask<Answer>(query: string, variables: object = {}): Promise<Answer> {
    if (MAKES_SECRET.test(query)) await this.requireKey(await this.form());
    const by = { c: this.c, admitted: this.#admitted };
    const data = await operate<Readonly<Record<string, Answer>>>(this.#parts.pipeline, by, { query, variables });
    return Object.values(data)[0] as Answer;
  }

  /** Shows a page. @param title without the name of the program */
  page(title: string, content: Child, status = 200, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
    return sendPage(this.c, this.#parts, { title, root: this.root, person: this.person, status, headers }, content);
  }

  /** Shows the page after a form is done. */
  done(title: string, content: Child): Promise<Response> {
    this.#isDone = true;
    return this.page(title, content);
  }

  /** Shows a secret once. @param next page to open once it is stored, under `/console/` */
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

/** A sent form, with its `SentForm` if it must be done only once. */
export interface ReadForm {
  readonly sent: SentForm | undefined;
  readonly form: URLSearchParams;
}

/** The form that was sent to a page. @throws RequestRefused */
export function readPageForm(c: Context): Promise<URLSearchParams> {
  return readForm(c, 'This page is answered', MAX_FORM_BYTES);
}

/** Relative path from an address under `/console/` to `/console/` (RFC 3986). */
export function rootFrom(path: string): string {
  return '../'.repeat(path.split('/').length - 1) || './';
}

/** Sends the browser to another page. */
export function seeOther(c: Context, location: string): Response {
  return c.body(null, 303, { Location: location, 'Cache-Control': 'no-store' });
}

/**
 * Headers of the answer to a form sent without a session. The back button can show it again, because it has no secret
 * and nothing from the console. Other requests need none.
 */
export function answerHeaders(c: Context): Readonly<Record<string, string>> {
  return c.req.method === 'POST' ? { 'Cache-Control': 'private, no-cache' } : {};
}

/** A page to send. */
export interface SentPage extends Frame {
  readonly status?: number | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Headers of all pages of its kind. */
  readonly pageHeaders?: Readonly<Record<string, string>>;
}

/** A page as a reply. @param host of the service as browsers see it, if it has one of its own */
export async function pageOf(
  { assets, host }: { assets: Assets; host?: string },
  { status = 200, headers, pageHeaders = PAGE_HEADERS, ...frame }: SentPage,
  content: Child,
): Promise<Reply> {
  const page = (
    <Layout {...frame} assets={assets} host={host}>
      {content}
    </Layout>
  );
  // Parts of the page can render over several turns of the event loop.
  const text = (await html`<!doctype html>${page}`).toString();
  return { status, type: 'text/html; charset=utf-8', text, headers: { ...pageHeaders, ...headers } };
}

export async function sendPage(
  c: Context,
  { assets, issuer }: Pick<PageParts, 'assets' | 'issuer'>,
  page: SentPage,
  content: Child,
): Promise<Response> {
  const headers = { ...(page.person ? {} : answerHeaders(c)), ...page.headers };
  return respond(c, await pageOf({ assets, host: new URL(issuer.of(c)).host }, { ...page, headers }, content));
}

/** Answers a signed-in person. */
export type VisitHandler = (visit: Visit) => Promise<Response>;

/** Admits a person and answers them. */
export type Welcome = (c: Context, root: string, answer: VisitHandler) => Promise<Response>;

/** Registers pages of the console. Addresses are under `/console/`, such as `keys/:id`. */
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

  /** Registers the target of a form. */
  post(path: string, answer: VisitHandler): void {
    this.#app.post(`${this.#path}/${path}`, (c) => this.#welcome(c, rootFrom(path), answer));
  }
}
