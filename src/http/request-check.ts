import type { IncomingMessage } from 'node:http';
import type { Caller, Principal } from '../keys/authorization/index.ts';
import { anything, checkOptions, invalidOption, orUndefined, type Rules, text } from '../keys/basics/index.ts';
import { actionByMethod } from '../keys/permissions/index.ts';
import { SERVICE } from '../keys/service/index.ts';
import { type Admission, type Admitted, BearerCheck, type CheckOptions } from './bearer-check.ts';
import { requirementOf } from './requirement.ts';
import {
  audience,
  type BearerAuthOptions,
  checkBearerOptions,
  checkOneOf,
  type OnRefused,
  partsOf,
  permissionOptions,
  type RefusalReply,
} from './bearer-options.ts';
import { plainAddress } from './client-address.ts';
import { NodeHead, type Received, requestTo } from './received.ts';
import { type ErrorReply, errorReply, headersOf, withFields } from './replies.ts';

/** A request of any protocol, such as tRPC or gRPC, or the message that signs in on a WebSocket. */
export interface PlainRequest {
  /** Its method, which decides the action on a `resource`. */
  method?: string | undefined;
  /** Its headers or metadata, with names in any case. The key is in `Authorization: Bearer <API key>`. */
  headers?: Headers | Readonly<Record<string, string | readonly string[] | undefined>> | undefined;
  /** The key itself, if it is not in the headers, which must then have none. */
  secret?: string | undefined;
  /** The address at the other end of the connection. Default: unknown. */
  address?: string | undefined;
}

/** The required permissions of a request, and facts about it. */
export interface CheckRequestOptions extends RequiredOptions {
  /**
   * The client's address, if the caller knows it better than the request. Headers of proxies are then ignored. Default:
   * that of the connection, or the one from a proxy on this machine. If it is unknown, as for a `Request`, keys that
   * are limited to networks are refused.
   */
  address?: string | undefined;
  /** See `BearerAuthOptions`. */
  audience?: string | undefined;
}

type RequiredOptions = Pick<BearerAuthOptions, 'permission' | 'all' | 'any' | 'resource' | 'onRefused'>;

/** A request with an accepted key. It has counted as a use, and against the key's limits. */
export interface AllowedRequest {
  readonly ok: true;
  /** The authenticated key. */
  readonly principal: Caller;
  /** Headers for the answer about the key's limits; empty if it has none. */
  readonly headers: Readonly<Record<string, string>>;
  /**
   * Checks the key again without counting another use: call it before acting on a later message, such as on a
   * long-lived connection.
   */
  checkAgain(): Promise<CheckedRequest>;
}

/** A refused request, with its answer. */
export interface RefusedRequest extends RefusalReply {
  readonly ok: false;
  /** With names in lower case, including the type of the body. */
  readonly headers: Readonly<Record<string, string>>;
  /** JSON: `code` and `message`, or the result of `onRefused`. */
  readonly body: string;
  /** The refusal as a response of the Fetch standard. */
  response(): Response;
}

/** The result of checking a request. */
export type CheckedRequest = AllowedRequest | RefusedRequest;

/** Checks the key of a request: see `OpenKeys.check`. */
export type RequestCheck = (
  request: Request | IncomingMessage | PlainRequest,
  options?: CheckRequestOptions,
) => Promise<CheckedRequest>;

/** An accepted request, for middleware. */
export interface Accepted extends AllowedRequest {
  readonly principal: Principal;
  /** Holds the secret, so it is kept from programs, which log what they get. */
  readonly admitted: Admitted;
  checkAgain(): Promise<Accepted | RefusedRequest>;
}

/** The requirements of one request. */
type RequestRule = Pick<BearerAuthOptions, 'resource' | 'onRefused'> & {
  readonly required: ReturnType<typeof requirementOf>;
};

/** Checks requests for all functions of the library: `keys.check`, and `bearerAuth` of each framework. */
export class RequestChecker {
  readonly #check: BearerCheck;
  readonly #asked: RequestRule;

  /** Makes a checker from a program's options and a framework's own rules. @throws KeysError OPTION_INVALID */
  static of<Options extends BearerAuthOptions>(
    options: Options,
    added: Rules<Omit<Options, keyof BearerAuthOptions>>,
  ): RequestChecker {
    checkBearerOptions(options, added);
    const { keys, ...others } = options;
    return new RequestChecker(new BearerCheck({ keys: keys[SERVICE], ...others }, partsOf(options)), others);
  }

  /** @param asked the requirements of each request, unless given with it */
  constructor(check: BearerCheck, asked: RequiredOptions) {
    this.#check = check;
    this.#asked = askedBy(asked);
  }

  /** Checks a new request; at once if its key is known. */
  enter(received: Received, asked = this.#asked): Accepted | RefusedRequest | Promise<Accepted | RefusedRequest> {
    const admission = this.#check.enter(received, requiredOf(asked, received));
    return admission instanceof Promise
      ? admission.then((settled) => this.#settled(received, asked, settled))
      : this.#settled(received, asked, admission);
  }

  #settled(received: Received, asked: RequestRule, admission: Admission): Accepted | RefusedRequest {
    if ('refusal' in admission) return refused(admission.refusal, asked.onRefused);
    const { principal, fields } = admission;
    if (asked.resource !== undefined && actionByMethod(received.method) === undefined) {
      principal.observer?.lacked([]);
      const message = `No permission on ${asked.resource} covers this method.`;
      return refused(withFields(errorReply('FORBIDDEN', message), fields), asked.onRefused);
    }
    const checkAgain = async () => this.#settled(received, asked, await this.#check.again(received, admission));
    return { ok: true, principal, headers: fields ?? {}, checkAgain, admitted: admission };
  }
}

function askedBy({ resource, onRefused, ...required }: RequiredOptions): RequestRule {
  return { resource, onRefused, required: requirementOf(required) };
}

/** The requirement of a request, which depends on its method for a resource. */
function requiredOf({ resource, required }: RequestRule, { method }: Received): RequestRule['required'] {
  const action = resource === undefined ? undefined : actionByMethod(method);
  return action ? requirementOf({ permission: `${resource!}:${action}` }) : required;
}

function refused(reply: ErrorReply, onRefused?: OnRefused): RefusedRequest {
  const { status, error } = reply;
  const { code, message } = error;
  const body = ownBody(onRefused, { status, code, message }) ?? JSON.stringify({ code, message });
  const headers = Object.fromEntries(headersOf(reply));
  return {
    ok: false,
    status,
    code,
    message,
    headers,
    body,
    response: () => new Response(body, { status, headers }),
  };
}

/** A program's own body for a refusal. If making it fails, the request is still refused. */
function ownBody(onRefused: OnRefused | undefined, reply: RefusalReply): string | undefined {
  try {
    return JSON.stringify(onRefused?.(reply));
  } catch (error) {
    process.emitWarning(error as Error);
    return undefined;
  }
}

const CALLER = 'keys.check';
const REQUEST_OPTIONS: Rules<PlainRequest> = {
  method: orUndefined(text),
  // Any value from a client is possible; bad ones are refused, and are no mistake of the calling program.
  headers: orUndefined(anything),
  secret: orUndefined(anything),
  address: orUndefined(text),
};

/** Checks requests of any form by the same rules as `bearerAuth`, with one count of failed credentials. */
export function requestCheck(keys: CheckOptions['keys']): RequestCheck {
  const checker = new RequestChecker(new BearerCheck({ keys, isOwn: () => true }, partsOf({})), {});
  const rules: Rules<CheckRequestOptions> = {
    ...permissionOptions(() => keys.catalog),
    address: orUndefined(text),
    audience: orUndefined(audience),
  };
  return async (request, options = {}) => {
    checkOptions(CALLER, options, rules);
    checkOneOf(CALLER, options);
    const received = receivedBy(request, options);
    if (options.audience !== undefined) received.to = requestTo(options.audience);
    if (options.resource !== undefined && received.method === undefined)
      throw invalidOption(CALLER, '"resource" needs the method of the request, which this request does not have.');
    return published(await checker.enter(received, askedBy(options)));
  };
}

/** The public part of a checked request. */
function published(checked: Accepted | RefusedRequest): CheckedRequest {
  if (!checked.ok) return checked;
  const { ok, principal, headers } = checked;
  return { ok, principal, headers, checkAgain: async () => published(await checked.checkAgain()) };
}

function receivedBy(request: Request | IncomingMessage | PlainRequest, options: CheckRequestOptions): Received {
  const received = isIncoming(request) ? new NodeHead(request) : new PlainHead(request);
  return Object.hasOwn(options, 'address') ? new AddressedHead(received, options.address) : received;
}

/** True for a request of Node, judged by members, since frameworks have their own classes. */
function isIncoming(request: unknown): request is IncomingMessage {
  const { rawHeaders, socket } = (request ?? {}) as Partial<IncomingMessage>;
  return Array.isArray(rawHeaders) && socket !== undefined;
}

/** True for a request of the Fetch standard, from any library. */
function isFetched(request: unknown): request is Request {
  const { clone, url } = (request ?? {}) as Partial<Request>;
  return typeof clone === 'function' && url !== undefined;
}

/** The head of a request that is not from Node. */
class PlainHead implements Received {
  to: Received['to'] = undefined;
  readonly #request: PlainRequest;
  readonly #headers: Headers | ReadonlyMap<string, string>;

  /** @throws KeysError OPTION_INVALID if it is not a request */
  constructor(request: Request | PlainRequest) {
    this.#request = isFetched(request) ? { method: request.method, headers: request.headers } : request;
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

  get method(): string | undefined {
    return this.#request.method;
  }

  peer(): string | undefined {
    const { address } = this.#request;
    return address && plainAddress(address);
  }
}

/** A request with a client's address from elsewhere. */
export class AddressedHead implements Received {
  to: Received['to'] = undefined;
  readonly #received: Received;
  readonly #address: string | undefined;

  constructor(received: Received, address: string | undefined) {
    this.#received = received;
    this.#address = address && plainAddress(address);
  }

  get method(): string | undefined {
    return this.#received.method;
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

/** The entries of any holder of headers: a `Map`, `Headers` of another library, metadata of gRPC, or an object. */
function entriesOf(headers: unknown): Iterable<readonly unknown[]> {
  if (typeof headers !== 'object' || headers === null) return [];
  const { getMap } = headers as { getMap?: () => object };
  if (typeof getMap === 'function') return Object.entries(getMap.call(headers));
  return Symbol.iterator in headers ? (headers as Iterable<readonly unknown[]>) : Object.entries(headers);
}

/** Headers by lower-case name, with repeated ones joined as in HTTP. Values that are not text are left out. */
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
