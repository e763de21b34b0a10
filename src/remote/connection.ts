import { KeysError } from '../keys/errors.ts';
import { readSecret } from '../keys/secret/secret.ts';
import { debugTimed } from '../keys/steps.ts';
import { type AnsweredError, errorOf, incompatible } from './errors.ts';
import { unreachable } from './failures.ts';

/** The server that requests go to. */
export interface ServerOptions {
  /** Without a path of its own, or with that below which the server is. */
  server: string;
  /** The secret of the key that is sent. */
  key: string;
  /** How long an answer may take, in milliseconds. Default: a minute. */
  timeoutMs?: number;
}

/** What to ask a server for, and how to read its answer, which may be anything. */
export interface Question<Result> {
  document: string;
  variables?: Readonly<Record<string, unknown>>;
  /** Reads the data; what it throws means that the answer is not that of a server of ours. */
  read: (data: Data) => Result;
}

// oxlint-disable-next-line typescript/no-explicit-any -- what is not as expected throws, and that is caught
export type Data = any;

const MAX_CHARACTERS = 64 * 1024 * 1024;
/** No text of a key has them; a terminal would obey them. */
// oxlint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/;

/** Asks a running server by GraphQL over HTTP. The key is sent to that address alone. */
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

  /** Whether a key, by the public id of its secret, is the one that is sent. */
  isSent(publicId: string): boolean {
    return readSecret(this.#options.key)?.publicId === publicId;
  }

  /**
   * Asks, and reads the answer.
   * @throws KeysError as the rules do on the server; UNAUTHENTICATED, RATE_LIMITED, SERVER_…
   */
  async ask<Result>({ document, variables = {}, read }: Question<Result>): Promise<Result> {
    const { status, text, headers } = await debugTimed(
      'a server was asked',
      () => this.#send(document, variables),
      (answer) => ({ server: this.server, operation: operationIn(document), status: answer?.status }),
    );
    const { data, errors } = this.#parse(text, status);
    if (status === 401)
      throw new KeysError('UNAUTHENTICATED', `The server ${this.server} does not accept the key that was sent.`);
    if (status === 429) throw rateLimited(this.server, headers.get('retry-after'));
    const [error] = errors;
    const code = error?.extensions?.code;
    if (status === 404 || status === 405)
      throw incompatible(this.server, `has no GraphQL endpoint there (status ${status}).`);
    if (error) throw errorOf(code === undefined && status >= 500 ? asFailure(error) : error, this.server);
    try {
      if (status !== 200 || hasControls(data)) throw new TypeError(`status ${status}`);
      return read(data);
    } catch (cause) {
      if (cause instanceof KeysError) throw cause;
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
        // Another address might be another's: the key is not sent on.
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

  #parse(text: string, status: number): { data: Data; errors: AnsweredError[] } {
    try {
      const { data, errors = [] } = JSON.parse(text) as { data?: Data; errors?: AnsweredError[] };
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

/** What a document asks, in short: `query apiKey`. */
function operationIn(document: string): string {
  return `${/\w+/.exec(document)?.[0]} ${/\{\s*(\w+)/.exec(document)?.[1]}`;
}

/** The text of an answer, which is read no further than its limit. @throws KeysError SERVER_INCOMPATIBLE beyond it */
export async function textOf(response: Response, server: string, maxCharacters: number): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length > maxCharacters) throw incompatible(server, 'answers without an end.');
  }
  return text + decoder.decode();
}

function asFailure({ message }: AnsweredError): AnsweredError {
  return { message };
}

function hasControls(value: unknown): boolean {
  if (typeof value === 'string') return CONTROL.test(value);
  return typeof value === 'object' && value !== null && Object.values(value).some(hasControls);
}

function rateLimited(server: string, retryAfter: string | null): KeysError {
  const wait = /^\d{1,9}$/.test(retryAfter ?? '') ? ` Try again in ${retryAfter} s.` : '';
  return new KeysError('RATE_LIMITED', `The server ${server} takes no more requests for now.${wait}`);
}
