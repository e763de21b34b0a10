import type { IncomingMessage } from 'node:http';
import type { Caller, Principal } from '../keys/authorization/index.ts';
import { anything, checkOptions, invalidOption, orUndefined, type Rules, text } from '../keys/basics/index.ts';
import { actionByMethod } from '../keys/permissions/index.ts';
import { SERVICE } from '../keys/service/index.ts';
import { type Admission, type Admitted, BearerCheck, type CheckOptions, requirementOf } from './bearer-check.ts';
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
import { NodeHead, plainAddress, type Received, requestTo } from './received.ts';
import { errorIn, errorReply, headersOf, type Reply, withFields } from './replies.ts';

/** A request of any protocol, such as one of tRPC or gRPC, or the message by which a WebSocket signs in. */
export interface PlainRequest {
  /** Its method, by which a `resource` is decided. */
  method?: string | undefined;
  /** Its headers or metadata, by names in any case. The key stands there as `Authorization: Bearer <API key>`. */
  headers?: Headers | Readonly<Record<string, string | readonly string[] | undefined>> | undefined;
  /** The key itself, where it does not stand in the headers, which then may hold none. */
  secret?: string | undefined;
  /** The address at the other end of the connection. Default: it is not known. */
  address?: string | undefined;
}

/** What a request requires, and what is said of it. */
export interface CheckRequestOptions extends RequiredOptions {
  /**
   * The client's address, where who asks knows it better than the request does: headers of proxies are not looked at
   * then. Default: that of the connection, or what a proxy on this machine says. Where it is not known, as of a
   * `Request`, a key that is bound to networks is refused.
   */
  address?: string | undefined;
  /** See `BearerAuthOptions`. */
  audience?: string | undefined;
}

type RequiredOptions = Pick<BearerAuthOptions, 'permission' | 'all' | 'any' | 'resource' | 'onRefused'>;

/** A request whose key was accepted. It has counted as a use of that, and against its limits. */
export interface AllowedRequest {
  readonly ok: true;
  /** The authenticated key. */
  readonly principal: Caller;
  /** Headers of the answer, which tell of the key's limits; empty if it has none. */
  readonly headers: Readonly<Record<string, string>>;
  /**
   * Checks the key again, as it is now, which counts as no further use: before something is done that was asked for
   * later, as on a connection that stays.
   */
  checkAgain(): Promise<CheckedRequest>;
}

/** A request that must be refused, and what it is to be answered. */
export interface RefusedRequest extends RefusalReply {
  readonly ok: false;
  /** By names in lower case, with the type of the body. */
  readonly headers: Readonly<Record<string, string>>;
  /** JSON: `code` and `message`, or what `onRefused` makes of them. */
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

/** A request that was accepted, as middleware hands it on. */
export interface Accepted extends AllowedRequest {
  readonly principal: Principal;
  /** Has the secret: programs, which log what they get, do not get it. */
  readonly admitted: Admitted;
  checkAgain(): Promise<Accepted | RefusedRequest>;
}

/** What one request requires. */
type RequestRule = Pick<BearerAuthOptions, 'resource' | 'onRefused'> & {
  readonly required: ReturnType<typeof requirementOf>;
};

/** What all doors of the library check requests by: `keys.check`, and `bearerAuth` of each framework. */
export class RequestChecker {
  readonly #check: BearerCheck;
  readonly #asked: RequestRule;

  /** By the options of a program, and rules of those that one framework adds. @throws KeysError OPTION_INVALID */
  static of<Options extends BearerAuthOptions>(
    options: Options,
    added: Rules<Omit<Options, keyof BearerAuthOptions>>,
  ): RequestChecker {
    checkBearerOptions(options, added);
    const { keys, ...others } = options;
    return new RequestChecker(new BearerCheck({ keys: keys[SERVICE], ...others }, partsOf(options)), others);
  }

  /** @param asked what each request requires, if that is not said of each */
  constructor(check: BearerCheck, asked: RequiredOptions) {
    this.#check = check;
    this.#asked = askedBy(asked);
  }

  /** Checks a request that has just arrived: at once where its key is known. */
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
      const message = `No permission on ${asked.resource} is for this method.`;
      return refused(withFields(errorReply('FORBIDDEN', message), fields), asked.onRefused);
    }
    const checkAgain = async () => this.#settled(received, asked, await this.#check.again(received, admission));
    return { ok: true, principal, headers: fields ?? {}, checkAgain, admitted: admission };
  }
}

function askedBy({ resource, onRefused, ...required }: RequiredOptions): RequestRule {
  return { resource, onRefused, required: requirementOf(required) };
}

/** What a request requires, by its method where a resource is named. */
function requiredOf({ resource, required }: RequestRule, { method }: Received): RequestRule['required'] {
  const action = resource === undefined ? undefined : actionByMethod(method);
  return action ? requirementOf({ permission: `${resource!}:${action}` }) : required;
}

function refused(reply: Reply, onRefused?: OnRefused): RefusedRequest {
  const { status } = reply;
  const { code, message } = errorIn(reply);
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

/** What a program makes of a refusal. It is one also where that fails. */
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
  // A client may have sent anything: that is refused, and no mistake of who checks it.
  headers: orUndefined(anything),
  secret: orUndefined(anything),
  address: orUndefined(text),
};

/** What checks requests of any form by the same rules as `bearerAuth`, with one count of failed credentials. */
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
      throw invalidOption(CALLER, '"resource" is decided by the method of a request, which this one does not say.');
    return published(await checker.enter(received, askedBy(options)));
  };
}

/** What a program gets of a checked request. */
function published(checked: Accepted | RefusedRequest): CheckedRequest {
  if (!checked.ok) return checked;
  const { ok, principal, headers } = checked;
  return { ok, principal, headers, checkAgain: async () => published(await checked.checkAgain()) };
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
  to: Received['to'] = undefined;
  readonly #request: PlainRequest;
  readonly #headers: Headers | ReadonlyMap<string, string>;

  /** @throws KeysError OPTION_INVALID for what is not a request */
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

/** A request whose client's address is known from elsewhere. */
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

/** Of whatever holds headers: a `Map`, `Headers` of another library, metadata of gRPC, or an object. */
function entriesOf(headers: unknown): Iterable<readonly unknown[]> {
  if (typeof headers !== 'object' || headers === null) return [];
  const { getMap } = headers as { getMap?: () => object };
  if (typeof getMap === 'function') return Object.entries(getMap.call(headers));
  return Symbol.iterator in headers ? (headers as Iterable<readonly unknown[]>) : Object.entries(headers);
}

/** Headers by their names in lower case, those of one name joined as HTTP has it. What is not text is none of them. */
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
