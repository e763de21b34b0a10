import {
  debugTimed,
  DeclarationError,
  type ErrorCode,
  errorEntry,
  fetchFailure,
  isRecord,
  KeysError,
  NameTakenError,
  proxyNote,
} from '../keys/basics/index.ts';
import { fieldsOf } from '../keys/key/index.ts';
import { readSecret } from '../keys/secret/index.ts';
import type { ServerRequest as Request } from '../keys/operations/index.ts';

/** The server to ask. */
export interface ServerOptions {
  /** Its address, with the path that it is mounted at, if it has one. */
  server: string;
  /** The secret of the key that is sent. */
  key: string;
  /** The longest wait for an answer, in milliseconds. Default: a minute. */
  timeoutMs?: number;
  /** Registers the error codes of features. */
  loadErrorCodes?: () => Promise<void>;
}

const MAX_CHARACTERS = 64 * 1024 * 1024;
/** Control characters, which terminals interpret. No text of a key has them, except for line breaks and inside JSON. */
// oxlint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/;
/** Fields shown as JSON, which escapes control characters. */
const JSON_FIELDS = new Set<string>(fieldsOf().flatMap(([name, { form }]) => (form === 'json' ? name : [])));
/** Fields with line breaks and tabs. */
const LINES_FIELDS = new Set<string>(fieldsOf().flatMap(([name, { hasLines }]) => (hasLines ? name : [])));

/** Asks a running server by GraphQL over HTTP. The key is sent to that address only. */
export class ServerConnection {
  readonly server: string;
  readonly #options: ServerOptions;

  constructor(options: ServerOptions) {
    this.server = options.server;
    this.#options = options;
  }

  /** The same server, with another key. */
  withKey(key: string): ServerConnection {
    return new ServerConnection({ ...this.#options, key });
  }

  isSent(publicId: string): boolean {
    return readSecret(this.#options.key)?.publicId === publicId;
  }

  /**
   * Sends a request and reads the answer, which may have any form.
   * @throws KeysError as the rules do on the server; UNAUTHENTICATED, RATE_LIMITED, SERVER_…
   */
  async ask<Answer>(request: Request<Answer>, variables: object): Promise<Answer> {
    const document = request.documentFor(variables);
    const { status, text, headers } = await debugTimed(
      'a server was asked',
      () => this.#send(document, variables),
      (answer) => ({ server: this.server, operation: operationIn(document), status: answer?.status }),
    );
    const { data, errors } = this.#parse(text, status);
    if (status === 401)
      throw new KeysError('UNAUTHENTICATED', `The server ${this.server} does not accept the key that was sent.`);
    if (status === 429) throw rateLimited(this.server, headers.get('retry-after'), text);
    const [error] = errors;
    const code = error?.extensions?.code;
    if (status === 404 || status === 405)
      throw incompatible(this.server, `has no GraphQL endpoint there (status ${status}).`);
    if (typeof code === 'string' && errorEntry(code) === undefined) await this.#options.loadErrorCodes?.();
    if (error) throw readError(code === undefined && status >= 500 ? asFailure(error) : error, this.server);
    try {
      if (status !== 200 || hasControls(data)) throw new TypeError(`status ${status}`);
      return request.read(data);
    } catch (cause) {
      throw incompatible(this.server, 'answered, but not as a server of svc-api does.', cause);
    }
  }

  async #send(query: string, variables: object): Promise<{ status: number; text: string; headers: Headers }> {
    const { server, key, timeoutMs = 60_000 } = this.#options;
    const changes = /^\s*mutation\b/.test(query);
    let response: Response;
    try {
      response = await fetch(`${server}/graphql`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${key}`,
          'content-type': 'application/json',
          accept: 'application/json',
          'user-agent': 'svc-api',
        },
        body: JSON.stringify({ query, variables }),
        // The key must not be sent on to another address.
        redirect: 'manual',
        signal: AbortSignal.timeout(timeoutMs),
      });
      const { status, headers } = response;
      if (status >= 300 && status < 400) {
        await response.body?.cancel();
        const { origin = 'elsewhere' } = URL.parse(headers.get('location') ?? '', server) ?? {};
        throw incompatible(
          server,
          `redirects to ${origin} (status ${status}), and a key is not sent on. Pass the address that answers.`,
        );
      }
      return { status, headers, text: await textOf(response, server, MAX_CHARACTERS) };
    } catch (error) {
      throw error instanceof KeysError ? error : unreachable(server, error, changes);
    }
  }

  #parse(text: string, status: number): { data: unknown; errors: AnsweredError[] } {
    try {
      const { data, errors = [] } = JSON.parse(text) as { data?: unknown; errors?: AnsweredError[] };
      if (data === undefined && errors.length === 0) throw new TypeError('neither data nor errors');
      if (!errors.every(({ message }) => typeof message === 'string')) throw new TypeError('errors without messages');
      return { data, errors };
    } catch (cause) {
      throw incompatible(
        this.server,
        `is not one of svc-api, or something in between answered for it (status ${status}).`,
        cause,
      );
    }
  }
}

/** The operation in a document, in short: `query apiKey`. */
function operationIn(document: string): string {
  return `${/\w+/.exec(document)?.[0]} ${/\{\s*(\w+)/.exec(document)?.[1]}`;
}

/** The text of an answer, read up to a limit. @throws KeysError SERVER_INCOMPATIBLE beyond it */
export async function textOf(response: Response, server: string, maxCharacters: number): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length > maxCharacters) throw incompatible(server, 'sends an endless answer.');
  }
  return text + decoder.decode();
}

function asFailure({ message }: AnsweredError): AnsweredError {
  return { message };
}

function hasControls(value: unknown, name = ''): boolean {
  if (JSON_FIELDS.has(name)) return false;
  if (typeof value === 'string') return CONTROL.test(LINES_FIELDS.has(name) ? value.replaceAll(/[\n\t]/g, '') : value);
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some(([member, each]) => hasControls(each, member));
}

function rateLimited(server: string, retryAfter: string | null, text: string): KeysError {
  if (text.includes('"BUDGET_SPENT"'))
    return new KeysError('BUDGET_SPENT', `The key for ${server} has no budget or use left.`);
  const wait = /^\d{1,9}$/.test(retryAfter ?? '') ? ` Try again in ${retryAfter} s.` : '';
  return new KeysError('RATE_LIMITED', `The server ${server} accepts no more requests for now.${wait}`);
}

/** An error in an answer, as far as its form is known. */
export interface AnsweredError {
  message: string;
  extensions?: {
    code?: unknown;
    reason?: unknown;
    replaceable?: unknown;
    requestId?: unknown;
    problems?: unknown;
  } | null;
}

/** Codes of a server that does not know a field or argument of the request. */
const MISFITS = new Set<unknown>(['GRAPHQL_VALIDATION_FAILED', 'GRAPHQL_PARSE_FAILED', 'BAD_REQUEST']);

function readError({ message, extensions }: AnsweredError, server: string): KeysError {
  const { code, reason, replaceable, requestId, problems } = extensions ?? {};
  const text = typeof reason === 'string' ? reason : message;
  if (code === 'NAME_TAKEN') return nameTaken(text, replaceable === true);
  const issues = code === 'DECLARATION_INVALID' ? issuesIn(problems) : [];
  if (issues.length > 0) return new DeclarationError(issues);
  if (isOfRules(code)) return new KeysError(code, text);
  if (MISFITS.has(code))
    return incompatible(server, `does not know what this command asks for, and is probably older: ${message}`);
  const id = typeof requestId === 'string' ? ` Its request id is ${requestId}.` : '';
  return new KeysError('SERVER_FAILED', `The server ${server} failed: ${message}${id}`);
}

/** True for codes with which a command fails like on the key store itself. */
function isOfRules(code: unknown): code is ErrorCode {
  if (typeof code !== 'string') return false;
  const { graphql, isAdded, exit } = errorEntry(code) ?? {};
  return (graphql === true || isAdded === true) && exit !== null;
}

/**
 * The error for an answer that is not from a server of ours.
 * @param what the end of a sentence that begins with "The server"
 */
export function incompatible(server: string, what: string, cause?: unknown): KeysError {
  return new KeysError('SERVER_INCOMPATIBLE', `The server ${server} ${what}`, { cause });
}

function nameTaken(message: string, isReplaceable: boolean): KeysError {
  const error = new NameTakenError('', isReplaceable);
  error.message = message;
  return error;
}

function issuesIn(problems: unknown): { path: (string | number)[]; message: string }[] {
  if (!Array.isArray(problems)) return [];
  return problems
    .filter(isRecord)
    .flatMap(({ path, message }) =>
      Array.isArray(path) && path.every(isStep) && typeof message === 'string' ? [{ path, message }] : [],
    );
}

function isStep(step: unknown): step is string | number {
  return typeof step === 'string' || typeof step === 'number';
}

/** Failures before anything was sent. */
const BEFORE = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'bad port']);
/** OpenSSL errors about the certificate. */
const CERTIFICATE = /CERT|SIGNATURE|ISSUER/;
const UNKNOWN = 'Whether the change was made is not known: look at the keys before you try again.';

/**
 * The error for a server that gave no answer.
 * @param changes true if a change was requested
 */
export function unreachable(server: string, error: unknown, changes: boolean): KeysError {
  const code = codeOf(error);
  const what = isUntrusted(error)
    ? `has a certificate that is not trusted here (${code}). NODE_EXTRA_CA_CERTS names a file with others to trust.`
    : code === 'TimeoutError'
      ? 'did not answer in time.'
      : `cannot be reached (${code}). Check its address, and whether it runs.`;
  const doubt = changes && !isUntrusted(error) && !BEFORE.has(code) ? ` ${UNKNOWN}` : '';
  return new KeysError(
    'SERVER_UNREACHABLE',
    `The server ${server} ${what}${isUntrusted(error) ? '' : proxyNote(server)}${doubt}`,
    { cause: error },
  );
}

/** True if there was no answer because of the server's certificate. */
export function isUntrusted(error: unknown): boolean {
  return CERTIFICATE.test(codeOf(error));
}

/** The code of a failure, which `fetch` puts into the cause; for a port that it blocks, its message. */
function codeOf(error: unknown): string {
  const { name } = error as Error;
  return name === 'TimeoutError' || name === 'AbortError' ? 'TimeoutError' : fetchFailure(error);
}
