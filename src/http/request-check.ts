import type { IncomingMessage } from 'node:http';
import type { Principal } from '../keys/authorization/principal.ts';
import { anything, checkOptions, orUndefined, type Rules, text } from '../keys/options.ts';
import { type Admission, BearerCheck, requirementOf } from './bearer-check.ts';
import {
  type BearerAuthOptions,
  checkOneOf,
  partsOf,
  permissionOptions,
  type RequiredPermissions,
} from './bearer-options.ts';
import { NodeHead, plainAddress, type Received } from './received.ts';
import { codeOf, headersOf } from './replies.ts';

/** A request of any protocol, such as one of tRPC or gRPC, or the message by which a WebSocket signs in. */
export interface PlainRequest {
  /** Its headers or metadata, by names in any case. The key stands there as `Authorization: Bearer <API key>`. */
  headers?: Headers | Readonly<Record<string, string | readonly string[] | undefined>> | undefined;
  /** The key itself, where it does not stand in the headers, which then may hold none. */
  secret?: string | undefined;
  /** The address at the other end of the connection. Default: it is not known. */
  address?: string | undefined;
}

/** What a request requires. */
export interface CheckRequestOptions extends RequiredPermissions {
  /**
   * The client's address, where who asks knows it better than the request does: headers of proxies are not looked at
   * then. Default: that of the connection, or what a proxy on this machine says. Where it is not known, as of a
   * `Request`, a key that is bound to networks is refused.
   */
  address?: string | undefined;
}

/** A request whose key was accepted. It has counted as a use of that, and against its limits. */
export interface AllowedRequest {
  readonly ok: true;
  /** The authenticated key. */
  readonly principal: Principal;
  /** Headers of the answer, which tell of the key's limits; empty if it has none. */
  readonly headers: Readonly<Record<string, string>>;
  /**
   * Checks the key again, as it is now, which counts as no further use: before something is done that was asked for
   * later, as on a connection that stays.
   */
  checkAgain(): Promise<CheckedRequest>;
}

/** A request that must be refused, and what it is to be answered. */
export interface RefusedRequest {
  readonly ok: false;
  /** 400, 401, 403, 429 or 503. */
  readonly status: number;
  /** Why, such as `UNAUTHENTICATED`: one of those of HTTP, which are stable. */
  readonly code: string;
  /** By names in lower case, with the type of the body. */
  readonly headers: Readonly<Record<string, string>>;
  /** JSON, in the form of GraphQL's errors. */
  readonly body: string;
  /** The same as a response of the Fetch standard. */
  response(): Response;
}

/** Whether a request may go on. */
export type CheckedRequest = AllowedRequest | RefusedRequest;

/** Checks the key of a request: see `OpenKeys.check`. */
export type RequestCheck = (
  request: Request | IncomingMessage | PlainRequest,
  options?: CheckRequestOptions,
) => Promise<CheckedRequest>;

const CALLER = 'keys.check';
const REQUEST_OPTIONS: Rules<PlainRequest> = {
  // A client may have sent anything: that is refused, and no mistake of who checks it.
  headers: orUndefined(anything),
  secret: orUndefined(anything),
  address: orUndefined(text),
};

/** What checks requests of any form by the same rules as `bearerAuth`, with one count of failed credentials. */
export function requestCheck(keys: BearerAuthOptions['keys']): RequestCheck {
  const check = new BearerCheck({ keys }, partsOf({}));
  const rules: Rules<CheckRequestOptions> = { ...permissionOptions(() => keys.catalog), address: orUndefined(text) };
  return async (request, options = {}) => {
    checkOptions(CALLER, options, rules);
    checkOneOf(CALLER, options);
    const received = receivedBy(request, options);
    const checked = (admission: Admission): CheckedRequest =>
      'refusal' in admission
        ? refused(admission.refusal)
        : {
            ok: true,
            principal: admission.principal,
            headers: admission.fields ?? {},
            checkAgain: async () => checked(await check.again(received, admission)),
          };
    return checked(await check.enter(received, requirementOf(options)));
  };
}

function refused(reply: Parameters<typeof headersOf>[0] & { status: number; text: string }): RefusedRequest {
  const { status, text: body } = reply;
  const headers = Object.fromEntries(headersOf(reply));
  return {
    ok: false,
    status,
    code: codeOf(reply),
    headers,
    body,
    response: () => new Response(body, { status, headers }),
  };
}

function receivedBy(request: Request | IncomingMessage | PlainRequest, options: CheckRequestOptions): Received {
  const received = isIncoming(request) ? new NodeHead(request) : new PlainHead(request);
  return Object.hasOwn(options, 'address') ? new AddressedHead(received, options.address) : received;
}

/** Whether a request is one of Node. Frameworks have classes of their own, with the same members. */
function isIncoming(request: unknown): request is IncomingMessage {
  const { rawHeaders, socket } = (request ?? {}) as Partial<IncomingMessage>;
  return Array.isArray(rawHeaders) && socket !== undefined;
}

/** Whether a request is one of the Fetch standard, by whatever library. */
function isFetched(request: unknown): request is Request {
  const { clone, url } = (request ?? {}) as Partial<Request>;
  return typeof clone === 'function' && url !== undefined;
}

/** The head of a request that is not one of Node. */
class PlainHead implements Received {
  readonly #request: PlainRequest;
  readonly #headers: Headers | ReadonlyMap<string, string>;

  /** @throws KeysError OPTION_INVALID for what is no request */
  constructor(request: Request | PlainRequest) {
    this.#request = isFetched(request) ? { headers: request.headers } : request;
    checkOptions(CALLER, this.#request, REQUEST_OPTIONS, 'The request is');
    const { headers } = this.#request;
    this.#headers = headers instanceof Headers ? headers : joined(entriesOf(headers));
  }

  header(name: string): string | undefined {
    if (name === 'authorization' && Object.hasOwn(this.#request, 'secret')) {
      const { secret } = this.#request;
      return typeof secret === 'string' && secret !== '' ? `Bearer ${secret}` : undefined;
    }
    return this.#headers.get(name) ?? undefined;
  }

  peer(): string | undefined {
    const { address } = this.#request;
    return address && plainAddress(address);
  }
}

/** A request whose client's address is known from elsewhere. */
class AddressedHead implements Received {
  readonly #received: Received;
  readonly #address: string | undefined;

  constructor(received: Received, address: string | undefined) {
    this.#received = received;
    this.#address = address && plainAddress(address);
  }

  get notes(): Received['notes'] {
    return this.#received.notes;
  }

  header(name: string): string | undefined {
    return name === 'forwarded' || name === 'x-forwarded-for' ? undefined : this.#received.header(name);
  }

  peer(): string | undefined {
    return this.#address;
  }
}

/** Of whatever holds headers: a `Map`, `Headers` of another library, metadata of gRPC, or an object. */
function entriesOf(headers: unknown): Iterable<readonly unknown[]> {
  if (typeof headers !== 'object' || headers === null) return [];
  const { getMap } = headers as { getMap?: () => object };
  if (typeof getMap === 'function') return Object.entries(getMap.call(headers));
  return Symbol.iterator in headers ? (headers as Iterable<readonly unknown[]>) : Object.entries(headers);
}

/** Headers by their names in lower case, those of one name joined as HTTP has it. What is no text is none of them. */
function joined(headers: Iterable<readonly unknown[]>): Map<string, string> {
  const all = new Map<string, string>();
  for (const entry of headers) {
    const [given, value] = Array.isArray(entry) ? (entry as readonly unknown[]) : [];
    if (typeof given !== 'string') continue;
    const name = given.toLowerCase();
    for (const text of Array.isArray(value) ? (value as readonly unknown[]) : [value]) {
      if (typeof text !== 'string') continue;
      const before = all.get(name);
      all.set(name, before === undefined ? text : `${before}, ${text}`);
    }
  }
  return all;
}
