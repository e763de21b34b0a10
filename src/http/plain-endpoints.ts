import { hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Context, Hono, MiddlewareHandler } from 'hono';
import Negotiator from 'negotiator';
import { type BearerEnv, ownBearerAuth } from './bearer-auth.ts';
import { BearerCheck, type CheckOptions } from './bearer-check.ts';
import type { CheckParts } from './bearer-options.ts';
import { readForm } from './request-body.ts';
import { requestIdIn } from './received.ts';
import type { FailureLog } from './refusal-log.ts';
import { honoHandler } from './hono-request.ts';
import { answering, errorBody, jsonReply, type Reply, RequestRefused, respond, unavailable } from './replies.ts';
import type { VerifiedKey } from '../keys/authentication/index.ts';
import type { KeysService } from '../keys/service/index.ts';

/** Health checks: the process is alive, and its key store answers. They need no key, and show no details. */
const [ALIVE, READY] = ['/healthz', '/readyz'] as const;
const HEALTH_PATHS: readonly string[] = [ALIVE, READY];

/**
 * True for health checks of load balancers over HTTP/1.0, which needs no Host; HAProxy sends `OPTIONS /` by default.
 * Other requests need one, since the host can determine the answer.
 */
export function isOldHealthCheck(
  { httpVersion, headers, method, url = '' }: IncomingMessage,
  paths: readonly string[] = HEALTH_PATHS,
): boolean {
  return httpVersion === '1.0' && !headers.host && (paths.includes(url) || (method === 'OPTIONS' && url === '/'));
}

const OK = jsonReply({ status: 'ok' });

/** Adds the addresses for health checks to an app. */
export function addHealthChecks(
  app: Hono<BearerEnv>,
  keys: Pick<KeysService, 'store'>,
  { allowOrigins, failures }: { allowOrigins: MiddlewareHandler; failures: FailureLog },
): void {
  const isReady = honoHandler(async ({ notes }) => {
    try {
      await keys.store.check();
      return OK;
    } catch (error) {
      failures.add(error, notes?.id);
      return unavailable();
    }
  });
  for (const path of HEALTH_PATHS) app.use(path, allowOrigins);
  app.get(ALIVE, (c) => respond(c, OK));
  app.get(READY, isReady);
  app.options('/', isReady);
}

const STYLE = `
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 40rem; margin: 3rem auto; padding: 0 1rem; }
code { overflow-wrap: anywhere; }
`;

/** The commands that pages mention, in the spelling of the CLI that serves them. */
export interface NamedCommands {
  /** Creates a key. */
  readonly create: string;
  /** Requests a key. */
  readonly login: string;
}

/** The commands of our own program. */
export const OWN_COMMANDS: NamedCommands = { create: 'svc-api apikey create', login: 'svc-api login' };

/** @param at the path of the page, as a URL has it @param root the same without a slash at its end */
const pageWith = (at: string, root: string, links: readonly HomeLink[], { create }: NamedCommands) => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>svc-api</title>
<style>${STYLE}</style>
<main>
<h1>svc-api</h1>
<p>This is a GraphQL service for programs. It answers requests with a valid API key.</p>
<dl>
<dt><code>POST ${root}/graphql</code></dt>
<dd>GraphQL, with <code>Authorization: Bearer &lt;API key&gt;</code> and <code>Content-Type: application/json</code>;
queries also by <code>GET ${root}/graphql?query=…</code></dd>
<dt>${HEALTH_PATHS.map((path) => `<code>GET ${root}${path}</code>`).join(', ')}</dt>
<dd>whether it is alive, and whether its key store answers; without a key</dd>
</dl>
${links.map(({ path, says }) => `<p>${says} <a href="${below(at, path)}/">${path.slice(1)}</a>.</p>`).join('\n')}
<p>To get a key, ask the administrator, or run <code>${create}</code> on the server. The documentation is in the folder
<code>docs</code> of the package <code>svc-api</code>; <code>docs/http.md</code> is about this interface.</p>
</main>
</html>
`;

function withoutSlash(path: string): string {
  return path.replace(/\/$/, '');
}

/** A relative address below the page, which also works if a proxy removes the start of the path. */
function below(at: string, path: string): string {
  return `.${withoutSlash(at.slice(at.lastIndexOf('/')))}${path}`;
}

/** The page loads, runs and sends nothing, and cannot be framed. */
const POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${hash('sha256', STYLE, 'base64')}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const HTML = {
  status: 200,
  type: 'text/html; charset=utf-8',
  headers: { 'Content-Security-Policy': POLICY, 'Referrer-Policy': 'no-referrer', Vary: 'Accept' },
};
const JSON_TYPE = 'application/json';

/** A link on the page at `/`. */
export interface HomeLink {
  /** The path below the root, such as `/console`. */
  readonly path: string;
  /** The words before the link, in HTML. */
  readonly says: string;
}

/** Adds a page that describes the app: as HTML to browsers, as JSON to other clients. */
export function addHomePage(
  app: Hono<BearerEnv>,
  { links, commands }: { links: readonly HomeLink[]; commands: NamedCommands },
): void {
  const page = (at: string): Reply => ({ ...HTML, text: pageWith(at, withoutSlash(at), links, commands) });
  const json = (root: string): Reply =>
    jsonReply(
      {
        service: 'svc-api',
        graphql: `${root}/graphql`,
        authorization: 'Bearer <API key>',
        ...Object.fromEntries(links.map(({ path }) => [path.slice(1), `${root}${path}`])),
        health: HEALTH_PATHS.map((path) => `${root}${path}`),
        documentation: 'docs/http.md in the package svc-api',
      },
      { Vary: 'Accept' },
    );
  app.get('/', (c) => {
    const accept = c.req.header('accept') ?? '*/*';
    const best = new Negotiator({ headers: { accept } }).mediaType([JSON_TYPE, 'text/html']);
    // A URL escapes the characters that begin a tag or end an attribute.
    const at = new URL(c.req.url).pathname;
    return respond(c, best === 'text/html' ? page(at) : json(withoutSlash(at)));
  });
}

/** Adds token introspection (RFC 7662). @param by checks the keys of callers */
export function addIntrospection(
  app: Hono<BearerEnv>,
  by: CheckOptions,
  { allowOrigins, parts }: { allowOrigins: MiddlewareHandler; parts: CheckParts },
): void {
  const { authenticator } = by.keys;
  const answer = answering<BearerEnv>(async (c) => {
    const form = await readForm(c, 'Keys are introspected');
    const token = tokenIn(form);
    const address = addressIn(form);
    const refusal = await c.get('checkAgain')();
    return refusal ?? jsonReply(descriptionOf(await authenticator.introspect(token), address));
  }, failedForm(parts.failures));
  const check = new BearerCheck({ ...by, permission: 'API_KEY:READ_ANY' }, parts);
  app.all('/introspect', allowOrigins, ownBearerAuth(check), answer);
}

/**
 * The answer (RFC 7662, section 2.2). A refused key is reported as inactive, without a reason.
 * @param address the address of the client that sent the key, empty if it is not known; null if the form does not say
 */
function descriptionOf(found: VerifiedKey | undefined, address: string | null): object {
  const { audiences = [], networks = [] } = found?.principal.restrictions ?? {};
  const isOutside = address !== null && !networks.every((network) => network.includes(address));
  if (!found || isOutside) return { active: false };
  const { principal, expiresAt } = found;
  const { id, name, createdAt, metadata } = principal.apiKey;
  // A key with a narrower audience than its parent keys has the longest one.
  const audience = audiences.toSorted((a, b) => b.length - a.length)[0];
  return {
    active: true,
    scope: principal.access.permissions().join(' '),
    sub: id,
    client_id: name,
    token_type: 'Bearer',
    ...(metadata && { metadata }),
    ...(audience !== undefined && { aud: audience }),
    iat: Math.floor(createdAt / 1000),
    ...(expiresAt !== null && { exp: Math.floor(expiresAt / 1000) }),
  };
}

/**
 * The token in a form (RFC 7662, section 2.1; RFC 7009, section 2.1), which is read from nowhere else.
 * @throws RequestRefused
 */
export async function readToken(c: Context, what: string): Promise<string> {
  return tokenIn(await readForm(c, what));
}

function tokenIn(form: URLSearchParams): string {
  const tokens = form.getAll('token');
  const [token = ''] = tokens;
  if (token === '' || tokens.length > 1)
    throw new RequestRefused('BAD_REQUEST', 'The form must have exactly one "token", the API key in question.');
  return token;
}

/** The address in a form; null without one. @throws RequestRefused */
function addressIn(form: URLSearchParams): string | null {
  const [address = null, ...others] = form.getAll('address');
  if (others.length > 0) throw new RequestRefused('BAD_REQUEST', 'The form must have at most one "address".');
  return address;
}

/** The replies to refused forms, in the form of RFC 6749, section 5.2, and of all our other errors. */
export function failedForm(failures: FailureLog): (error: unknown, c: Context) => Reply {
  return (error, c) => {
    if (error instanceof RequestRefused) {
      const { status, code, message } = error;
      const refused = { error: 'invalid_request', error_description: message, ...errorBody(message, code) };
      return { ...jsonReply(refused, status === 405 ? { Allow: 'POST' } : undefined), status };
    }
    failures.add(error, requestIdIn(c));
    return unavailable();
  };
}
