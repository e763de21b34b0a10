/** A permission, such as `WIKI:READ_ANY`. */
export type Permission = `${string}:${string}`;

/** The server that checks keys, and how it is asked. */
export interface ClientOptions {
  /** The address of the server, such as `https://keys.example.org`. Off this machine it begins with `https:`. */
  server: string;
  /** The secret of a key of that server with API_KEY:READ_ANY. */
  token: string;
  /** How long the server can take to answer, in milliseconds. Default: 3000. */
  timeoutMs?: number;
  /**
   * How long an accepted key is remembered, in milliseconds, up to 60000. For that long after you delete, disable or
   * narrow a key, it still works here. Default: 0: the server is asked each time.
   */
  maxStaleMs?: number;
  /** Lets the token and the keys cross a network in clear text. Default: false. */
  insecure?: boolean;
  /** Sends the requests, such as a service binding of a Worker. Default: the `fetch` of the runtime. */
  fetch?: (url: string, init: RequestInit) => Promise<Response>;
}

/** The requirements of one request: one of `permission`, `all` and `any`. Without them, any valid key is accepted. */
export interface ClientCheckOptions {
  /** A permission that is required. */
  permission?: Permission;
  /** Several permissions, all of which are required. */
  all?: readonly Permission[];
  /** Several permissions, of which one is enough. */
  any?: readonly Permission[];
  /** The address of the protected service. Keys for a single address are accepted only there and below it. */
  audience?: string;
  /** The client's address. Without it, keys that are limited to networks are refused. */
  address?: string | undefined;
}

/** An accepted key, and its permissions. */
export interface ClientPrincipal {
  /** Times are in milliseconds since 1970. */
  readonly apiKey: {
    readonly id: string;
    readonly name: string;
    readonly audience: string | null;
    /** A JSON object from its owner; null for none. */
    readonly metadata: Readonly<Record<string, unknown>> | null;
    readonly createdAt: number;
    /** When the secret stops working; null if never. */
    readonly expiresAt: number | null;
  };
  /** @throws ClientError OPTION_INVALID for a text that is not a permission */
  can(permission: Permission): boolean;
  permissions(): Permission[];
}

/** An accepted request. */
export interface AcceptedByClient {
  readonly ok: true;
  readonly principal: ClientPrincipal;
}

/** A refused request, and its answer. */
export interface RefusedByClient {
  readonly ok: false;
  /** 400, 401, 403 or 503. */
  readonly status: number;
  readonly code: 'INVALID_REQUEST' | 'UNAUTHENTICATED' | 'FORBIDDEN' | 'SERVICE_UNAVAILABLE';
  /** A sentence for people. */
  readonly message: string;
  /** With names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** JSON: `code` and `message`. */
  readonly body: string;
  /** The reason for a 503, for your log. It is not in the answer. */
  readonly cause?: ClientError;
  /** The refusal as a response of the Fetch standard. */
  response(): Response;
}

/** Checks keys at a server. Its methods never reject because of a client's input, or because the server fails. */
export interface KeysClient {
  /** Checks the key in the header Authorization of a request: `Bearer <API key>`. */
  check(request: { readonly headers: Pick<Headers, 'get'> }, options?: ClientCheckOptions): Promise<CheckedByClient>;
  /** Checks a secret. A missing secret is refused as well. */
  verify(secret: string | null | undefined, options?: ClientCheckOptions): Promise<CheckedByClient>;
}

/** The result of a check. */
export type CheckedByClient = AcceptedByClient | RefusedByClient;

/** An invalid option, or the reason why the server could not check a key. Commands use the same codes. */
export class ClientError extends Error {
  override readonly name = 'ClientError';
  readonly code:
    | 'OPTION_INVALID'
    | 'SERVER_UNREACHABLE'
    | 'SERVER_INCOMPATIBLE'
    | 'SERVER_FAILED'
    | 'UNAUTHENTICATED'
    | 'FORBIDDEN'
    | 'RATE_LIMITED';

  constructor(code: ClientError['code'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

const MAX_ANSWER_BYTES = 1 << 20;
const MAX_KEPT = 1000;
/** One run of visible ASCII (RFC 6750, section 2.1), no longer than the server reads. */
const BEARER = /^bearer +([!-~]{1,4096})$/i;
const FORM = '"Authorization: Bearer <API key>"';
/** A check of each option, and a description of its valid values. */
type Rules<Options> = { readonly [Name in keyof Required<Options>]: readonly [(value: unknown) => unknown, string] };

const AN_ADDRESS = 'an address, such as https://example.org';
const isText = (form: RegExp) => (value: unknown) => typeof value === 'string' && form.test(value);
const isPermission = isText(/^[A-Z][A-Z0-9_]*:[A-Z][A-Z0-9_]*$/);
const isList = (value: unknown) => Array.isArray(value) && value.length > 0 && value.every(isPermission);
const LIST = [isList, 'a list of permissions'] as const;
const msFrom = (least: number) =>
  [
    (value: unknown) => Number.isInteger(value) && Number(value) >= least && Number(value) <= 60_000,
    `an integer from ${least} to 60000`,
  ] as const;

const OPTIONS: Rules<ClientOptions> = {
  server: [addressIn, AN_ADDRESS],
  token: [isText(/^[!-~]{1,4096}$/), 'the secret of a key'],
  timeoutMs: msFrom(1),
  maxStaleMs: msFrom(0),
  insecure: [(value) => typeof value === 'boolean', 'true or false'],
  fetch: [(value) => typeof value === 'function', 'a function'],
};
const CHECK_OPTIONS: Rules<ClientCheckOptions> = {
  permission: [isPermission, 'a permission, such as WIKI:READ_ANY'],
  all: LIST,
  any: LIST,
  audience: [addressIn, AN_ADDRESS],
  address: [(value) => value === undefined || typeof value === 'string', 'text'],
};

/**
 * Makes a client that checks API keys at a server, by introspection (RFC 7662). It needs `fetch` and nothing of Node.
 * @throws ClientError OPTION_INVALID
 */
export function createClient(options: ClientOptions): KeysClient {
  const needed = { server: undefined, token: undefined } as unknown as ClientOptions;
  const given = checked('createClient', { ...needed, ...options }, OPTIONS);
  const { token, timeoutMs = 3000, maxStaleMs = 0, insecure = false } = given;
  const server = addressIn(given.server)!;
  if (!insecure && !/^(?:https:|http:\/\/(?:localhost|127(?:\.\d+){3}|\[::1\])(?:[:/]|$))/.test(server))
    throw invalid('createClient: "server" must begin with https: unless "insecure" is true.');
  const kept = new Map<string, { readonly until: number; readonly found: Found }>();

  async function introspect(secret: string, address: string): Promise<Found | undefined> {
    const send = given.fetch ?? fetch;
    let answer: Partial<Found> | null;
    try {
      const response = await send(`${server}/introspect`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}` },
        body: new URLSearchParams({ token: secret, address }),
        // Workers do not support "error". The status of a redirect is not 200.
        redirect: 'manual',
        signal: AbortSignal.timeout(timeoutMs),
      });
      if (response.status !== 200) {
        await response.body?.cancel();
        throw refusal(server, response.status);
      }
      answer = JSON.parse(await textOf(response)) as Partial<Found> | null;
    } catch (cause) {
      if (cause instanceof ClientError) throw cause;
      const code = cause instanceof SyntaxError ? 'SERVER_INCOMPATIBLE' : 'SERVER_UNREACHABLE';
      // Node's fetch says only "fetch failed": the reason is in its cause.
      const why = ((cause as Error).cause as { code?: string })?.code ?? cause;
      throw new ClientError(code, `Asking ${server} failed: ${String(why)}`, { cause });
    }
    if (answer?.active === false) return undefined;
    if (answer?.active === true && isComplete(answer)) return answer;
    throw new ClientError('SERVER_INCOMPATIBLE', `The answer of ${server} describes no key.`);
  }

  async function find(secret: string, address: string): Promise<Found | undefined> {
    if (maxStaleMs === 0) return introspect(secret, address);
    const id = await digestOf(`${secret} ${address}`);
    const askedAt = performance.now();
    const known = kept.get(id);
    if (known && askedAt < known.until && Date.now() < (known.found.exp ?? Infinity) * 1000) return known.found;
    const found = await introspect(secret, address);
    if (!found) return undefined;
    if (kept.size >= MAX_KEPT) kept.delete(kept.keys().next().value!);
    kept.set(id, { until: askedAt + maxStaleMs, found });
    return found;
  }

  async function check(header: string | null, checkOptions: ClientCheckOptions = {}): Promise<CheckedByClient> {
    const {
      permission,
      all = permission && [permission],
      any,
      audience,
      address = '',
    } = checked('check', checkOptions, CHECK_OPTIONS);
    if ([permission, checkOptions.all, any].filter(Boolean).length > 1)
      throw invalid('check: Give one of "permission", "all" and "any".');
    const secret = BEARER.exec(header ?? '')?.[1];
    if (secret === undefined)
      return /^bearer\b/i.test(header ?? '')
        ? refused(400, 'INVALID_REQUEST', `Malformed Authorization header: send one ${FORM}.`, 'invalid_request')
        : refused(401, 'UNAUTHENTICATED', `Missing API key: send it as ${FORM}.`);
    let found;
    try {
      found = await find(secret, address);
    } catch (error) {
      const message = 'The service cannot check keys now. Try again later.';
      return refused(503, 'SERVICE_UNAVAILABLE', message, '', error as ClientError);
    }
    if (!found || !isFor(found.aud, audience))
      return refused(401, 'UNAUTHENTICATED', 'The API key is not valid.', 'invalid_token');
    const principal = principalOf(found);
    const may = (each: Permission) => principal.can(each);
    const missing = any?.some(may) ? [] : (any ?? all ?? []).filter((each) => !may(each));
    if (missing.length === 0) return { ok: true, principal };
    const message = `This key lacks ${missing.join(any ? ' or ' : ' and ')}.`;
    return refused(403, 'FORBIDDEN', message, `insufficient_scope", scope="${missing.join(' ')}`);
  }

  return {
    check: async ({ headers }, checkOptions) => check(headers.get('authorization'), checkOptions),
    verify: async (secret, checkOptions) => check(secret ? `Bearer ${secret}` : null, checkOptions),
  };
}

/** An active key, as the server describes it. */
interface Found {
  readonly active?: unknown;
  readonly scope: string;
  readonly sub: string;
  readonly client_id: string;
  readonly aud?: string | null;
  readonly metadata?: Readonly<Record<string, unknown>> | null;
  readonly iat: number;
  readonly exp?: number;
}

function isComplete(answer: Partial<Found>): answer is Found {
  const { scope, sub, client_id: name, aud = '', metadata, iat, exp = 0 } = answer;
  return (
    [scope, sub, name, aud].every((each) => typeof each === 'string') &&
    [iat, exp].every(Number.isFinite) &&
    typeof (metadata ?? {}) === 'object' &&
    !Array.isArray(metadata)
  );
}

function principalOf({
  scope,
  sub: id,
  client_id: name,
  aud = null,
  metadata = null,
  iat,
  exp,
}: Found): ClientPrincipal {
  const permissions = scope.split(' ').filter(Boolean) as Permission[];
  return {
    apiKey: {
      id,
      name,
      audience: aud,
      metadata,
      createdAt: iat * 1000,
      expiresAt: exp === undefined ? null : exp * 1000,
    },
    can(permission) {
      checked('can', { permission }, CHECK_OPTIONS);
      return permissions.includes(permission);
    },
    permissions: () => [...permissions],
  };
}

function refused(
  status: number,
  code: RefusedByClient['code'],
  message: string,
  problem = '',
  cause?: ClientError,
): RefusedByClient {
  const body = JSON.stringify({ code, message });
  const headers = {
    'cache-control': 'no-store',
    'content-type': 'application/json',
    ...(cause
      ? { 'retry-after': '1' }
      : { 'www-authenticate': `Bearer realm="svc-api"${problem && `, error="${problem}"`}` }),
    'x-content-type-options': 'nosniff',
  };
  const response = () => new Response(body, { status, headers });
  return { ok: false, status, code, message, headers, body, ...(cause && { cause }), response };
}

/** The reason why a server does not answer with 200. */
function refusal(server: string, status: number): ClientError {
  const codes = { 401: 'UNAUTHENTICATED', 403: 'FORBIDDEN', 429: 'RATE_LIMITED' } as const;
  const code = codes[status as keyof typeof codes] ?? (status < 500 ? 'SERVER_INCOMPATIBLE' : 'SERVER_FAILED');
  return new ClientError(code, `The server ${server} answered the token with ${status}.`);
}

/** The body of an answer. @throws SyntaxError if it is too long */
async function textOf(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  const reader = response.body?.getReader();
  let text = '';
  if (!reader) return text;
  for (let size = 0; ;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    size += value.length;
    if (size > MAX_ANSWER_BYTES) {
      await reader.cancel();
      throw new SyntaxError('Too long.');
    }
    text += decoder.decode(value, { stream: true });
  }
}

/** True if a key for one address can be used at another: it must be the same, or below it. */
function isFor(own: string | null | undefined, audience: string | undefined): boolean {
  const address = addressIn(audience);
  return own === undefined || `${address}/`.startsWith(`${own}/`);
}

/** An address of http or https, without a final slash; undefined for any other value. */
function addressIn(value: unknown): string | undefined {
  const text = String(value);
  if (!/^https?:\/\/[^?#\\@\s]+$/i.test(text) || !URL.canParse(text)) return undefined;
  const { origin, pathname } = new URL(text);
  return (origin + pathname).replace(/\/+$/, '');
}

async function digestOf(text: string): Promise<string> {
  const bytes = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
  return String.fromCharCode(...new Uint8Array(bytes));
}

/** The options, if they are valid. @throws ClientError OPTION_INVALID */
function checked<Options extends object>(caller: string, options: Options, rules: Rules<Options>): Options {
  for (const [name, value] of Object.entries(options)) {
    const [isRight, description] = Object.hasOwn(rules, name) ? rules[name as keyof Options] : [];
    if (!isRight?.(value))
      throw invalid(`${caller}: "${name}" ${description ? `must be ${description}` : 'is not an option'}.`);
  }
  return options;
}

function invalid(message: string): ClientError {
  return new ClientError('OPTION_INVALID', message);
}
