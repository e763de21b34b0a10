import { madeOnce, yielding, type OrRefusal } from '../../keys/basics/index.ts';
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import {
  type AppliedRules,
  applyRules,
  arrivalOf,
  type AllowedEntry,
  type Entry,
  GuardedRequest,
  type GuardRules,
} from './access.ts';
import {
  type ArrivedRequest,
  badRequest,
  type BareConnection,
  ENDLESS,
  methodNotAllowed,
  type ReceivedRequest,
  refuse,
  requestTimeout,
} from './arrived-request.ts';
import type { PassedRequest } from './exchange.ts';
import { identityHeaders, NOBODY } from './identity-headers.ts';
import { withoutCompression } from './sent-credentials.ts';
import { withoutForbidden } from './mcp-answers.ts';
import {
  judgeMessages,
  type McpMessages,
  MessagesRefused,
  notMcp,
  readMessages,
  sessionIn,
  sessionNotFound,
  tasksIn,
} from './mcp.ts';
import { goesOn, heldAs, type Holder, type Holders, KnownHolders, type McpServer } from './mcp-holders.ts';
import { McpRules } from './mcp-rules.ts';
import { type Framing, hasBody, readTarget, requestFraming, type RequestTarget } from './passed-headers.ts';
import { protocolOf, ReverseProxy, type ReverseProxyOptions } from './reverse-proxy.ts';
import {
  type Admitted,
  affordableConnections,
  atPeriodEnd,
  type CheckParts,
  type ClientAddresses,
  type ConnectionHandler,
  type Endpoint,
  errorReply,
  FailureLog,
  internalError,
  isOldHealthCheck,
  jsonReply,
  notesOf,
  partsOf,
  type Reply,
  type RequestHandler,
  RequestRefused,
  serveRequests,
  type ServerOptions,
  type StartedServer,
  unavailable,
  withFields,
} from '../../http/index.ts';
import { type Charge, ONCE, type Principal } from '../../keys/authorization/index.ts';
import type { Permission } from '../../keys/permissions/index.ts';
import type { Log } from '../../log.ts';
import type { Match } from '../routes/index.ts';
import { isAtDoor } from '../sessions/index.ts';

/** A request in progress. */
interface OpenExchange extends Pick<PassedRequest, 'refusedNow'> {
  /** @param refusal undefined if it could not be decided */
  end(refusal: Reply | undefined): void;
}

/** Interval for checking requests in progress, so that a revoked key stops them within a second. */
const CHECK_MS = 250;

/** Ends requests in progress when their key is deleted, disabled, restricted or expires, or when routes change. */
export class OpenExchanges {
  readonly #open = new Set<OpenExchange>();
  #isChecking = false;

  /** @returns a function that forgets it, once it has ended */
  add(exchange: OpenExchange): () => void {
    this.#open.add(exchange);
    if (!this.#isChecking) this.#checkSoon();
    return () => void this.#open.delete(exchange);
  }

  #checkSoon(): void {
    this.#isChecking = true;
    setTimeout(() => void this.#check(), CHECK_MS).unref();
  }

  async #check(): Promise<void> {
    const asked: Promise<void>[] = [];
    for await (const exchange of yielding([...this.#open])) {
      if (!this.#open.has(exchange)) continue;
      // Mostly it is known at once. Where the store must be asked, it is asked about all of them together.
      const settle = (refusal: Reply | undefined) => {
        // Closing its connection can take a while.
        if (refusal && this.#open.delete(exchange)) exchange.end(refusal);
      };
      try {
        const refusal = exchange.refusedNow();
        if (refusal instanceof Promise) asked.push(refusal.then(settle).catch(() => this.#endUnknown(exchange)));
        else settle(refusal);
      } catch {
        this.#endUnknown(exchange);
      }
    }
    await Promise.all(asked);
    if (this.#open.size > 0) this.#checkSoon();
    else this.#isChecking = false;
  }

  /** Ends a request that cannot be decided. Others are still checked. */
  #endUnknown(exchange: OpenExchange): void {
    this.#open.delete(exchange);
    exchange.end(undefined);
  }
}

/** Options of a guard. */
export interface GuardOptions extends Omit<ReverseProxyOptions, 'failed'> {
  /** Passes the key on to upstreams. */
  readonly forwardCredential: boolean;
  /** The path at which the guard says whether it can let requests pass; undefined for none. */
  readonly healthPath?: string | undefined;
  /** The keys that began MCP sessions and tasks, for all processes of the guard. Default: those of this process. */
  readonly holders?: Holders | undefined;
  readonly log: Log;
}

/** Time for a sign-in form to arrive, in milliseconds. */
const FORM_MS = 30_000;

/** Methods for proxies that clients choose: to pass them on would do harm. */
const REFUSED_METHODS: ReadonlySet<string | undefined> = new Set(['CONNECT', 'TRACE']);

/** The messages of a request to an MCP server, and the permissions they need. A GET has none. */
interface JudgedMessages extends Pick<McpMessages, 'messages'>, Partial<Pick<McpMessages, 'body'>> {
  readonly rules: McpRules;
  /** The key that began the request's session; null if there is none, undefined if the request names no session. */
  readonly session: Holder | null | undefined;
  /** The keys that began the named tasks. */
  readonly tasks: ReadonlyMap<string, Holder>;
}

/** Checks whether the same key and routes decide, so that the messages need no new check. */
function isJudgedAlike(known: AllowedEntry, entry: Entry): boolean {
  return 'match' in entry && entry.match === known.match && entry.admitted?.principal === known.admitted?.principal;
}

/** The rules for parts of an MCP server. */
const rulesFor = madeOnce((match: Match) => new McpRules(match));

/** A reverse proxy that lets only requests with an API key pass. */
class Guard implements RequestHandler, ConnectionHandler {
  readonly connections = this;
  readonly #options: GuardOptions;
  readonly #proxy: ReverseProxy;
  #rules: AppliedRules;
  readonly #open = new OpenExchanges();
  readonly #holders: Holders;
  /** Connections that close after the present answer. */
  readonly #closing = new WeakSet<Socket>();
  #parts: CheckParts;
  /** By the names of upstreams. */
  readonly #upstreamFailures = new Map<string | undefined, FailureLog>();

  constructor(options: GuardOptions, rules: GuardRules) {
    const { log } = options;
    this.#options = options;
    this.#holders = options.holders ?? new KnownHolders();
    this.#parts = partsOf({ log });
    this.#proxy = new ReverseProxy({
      ...options,
      failed: ({ name }, error, requestId) => this.#failuresOf(name).add(error, requestId),
    });
    const { parts, applied } = this.#apply(rules);
    this.#parts = parts;
    this.#rules = applied;
  }

  /**
   * Prepares new rules. The returned function applies them, also to requests in progress.
   * @throws KeysError as `applyRules`
   */
  prepareRules(rules: GuardRules): () => void {
    const { parts, applied } = this.#apply(rules);
    return () => {
      this.#parts = parts;
      this.#rules = applied;
    };
  }

  handle(incoming: IncomingMessage, outgoing: ServerResponse): void {
    this.#handle(incoming, outgoing, false);
  }

  handleExpecting(incoming: IncomingMessage, outgoing: ServerResponse): void {
    this.#handle(incoming, outgoing, true);
  }

  isUpgrade(incoming: IncomingMessage): boolean {
    return protocolOf(incoming, requestFraming(incoming) ?? []) !== undefined;
  }

  get clients(): ClientAddresses {
    return this.#rules.clients;
  }

  endpointOf(incoming: IncomingMessage): Endpoint {
    const target = readTarget(incoming);
    if (this.#isHealthCheck(incoming, target)) return 'health';
    return this.#rules.door && 'path' in target && isAtDoor(target.path) ? 'sign-in' : 'guard';
  }

  handleConnection(incoming: IncomingMessage, outgoing: ServerResponse, connection: BareConnection): void {
    const { socket } = connection;
    socket.on('error', () => {}); // It closes.
    outgoing.shouldKeepAlive = false;
    outgoing.once('finish', () => (socket as Socket).destroySoon());
    try {
      outgoing.assignSocket(socket as Socket);
    } catch {
      return void socket.destroy(); // An earlier request on it is not answered yet.
    }
    const protocol = protocolOf(incoming, []);
    const switching = protocol === undefined ? undefined : { protocol, connection };
    this.#receive({ incoming, outgoing, closeAfter: () => {} }, { expectsContinue: false, switching });
  }

  refusedConnection(reason: string, address: string): void {
    this.#parts.refusals.add('connection refused', { reason, address });
  }

  /** Closes tunnels, which would never end by themselves, so that the server can stop. */
  endTunnels(): void {
    this.#proxy.endTunnels();
  }

  /** Closes the connections to upstreams, and logs the counted entries. */
  close(): void {
    this.#proxy.close();
    for (const log of [this.#parts.refusals, this.#parts.failures, ...this.#upstreamFailures.values()]) log.finish();
  }

  #failuresOf(upstream: string | undefined): FailureLog {
    let failures = this.#upstreamFailures.get(upstream);
    if (!failures) {
      const name = upstream === undefined ? '' : ` "${upstream}"`;
      failures = new FailureLog(this.#options.log, atPeriodEnd, `the upstream${name} did not answer`);
      this.#upstreamFailures.set(upstream, failures);
    }
    return failures;
  }

  #apply(rules: GuardRules): { parts: CheckParts; applied: AppliedRules } {
    const { log, forwardCredential } = this.#options;
    const { failedCredentials } = rules;
    const parts = partsOf({ log, ...(failedCredentials !== undefined && { failedCredentials }) }, this.#parts);
    return { parts, applied: applyRules(rules, parts, { forwardCredential, log }) };
  }

  #handle(incoming: IncomingMessage, outgoing: ServerResponse, expectsContinue: boolean): void {
    const { socket } = incoming;
    if (this.#closing.has(socket)) return;
    const closeAfter = () => {
      this.#closing.add(socket);
      outgoing.shouldKeepAlive = false;
    };
    // If the protocol is not switched, Node drops anything that the client sent after the request.
    if (incoming.headers.upgrade !== undefined) closeAfter();
    this.#receive({ incoming, outgoing, closeAfter }, { expectsContinue, switching: undefined });
  }

  #receive(arrived: ArrivedRequest, wish: Pick<ReceivedRequest, 'expectsContinue' | 'switching'>): void {
    const { incoming } = arrived;
    const framing = requestFraming(incoming);
    if (!framing) return refuse(arrived, badRequest('The length of the body is ambiguous.'), ENDLESS);
    if (REFUSED_METHODS.has(incoming.method)) return refuse(arrived, methodNotAllowed(incoming.method!), framing);
    const target = readTarget(incoming);
    if (this.#isHealthCheck(incoming, target)) return void this.#answerHealth(arrived, framing);
    if ('refusal' in target) return refuse(arrived, badRequest(target.refusal), framing);
    const received = { ...arrived, ...wish, target, framing };
    if (this.#rules.door && isAtDoor(target.path)) return void this.#openDoor(received, this.#rules.door);
    try {
      this.#judge(received);
    } catch (error) {
      this.#fail(received, error);
    }
    return undefined;
  }

  #judge(received: ReceivedRequest): void {
    const { incoming, outgoing, target, framing } = received;
    const request = new GuardedRequest(incoming, target);
    const answer = target.path.startsWith('/.well-known/') ? this.#rules.answerClient(request) : undefined;
    if (answer) return refuse(received, answer, framing);
    const settle = (entry: Entry) => {
      if ('refusal' in entry) refuse(received, entry.refusal, framing);
      else if (!outgoing.destroyed) this.#pass(received, request, entry);
    };
    const entry = this.#rules.access.enter(request);
    if (entry instanceof Promise) entry.then(settle).catch((error: unknown) => this.#fail(received, error));
    else settle(entry);
  }

  /** Answers requests to our own pages on the host of the service. */
  async #openDoor(received: ReceivedRequest, door: NonNullable<AppliedRules['door']>): Promise<void> {
    const { incoming, outgoing, switching, framing, expectsContinue } = received;
    if (switching) return refuse(received, badRequest('This address does not support other protocols.'), framing);
    try {
      const { handle } = await door.load();
      if (outgoing.destroyed) return undefined;
      // Forms are short, so do not wait long for one.
      const timer = setTimeout(() => incoming.complete || incoming.socket.destroy(), FORM_MS);
      incoming.once('close', () => clearTimeout(timer));
      if (expectsContinue) outgoing.writeContinue();
      handle(incoming, outgoing);
    } catch (error) {
      this.#fail(received, error);
    }
    return undefined;
  }

  #pass(received: ReceivedRequest, request: GuardedRequest, entered: AllowedEntry): void {
    const { match } = entered;
    // A preflight that the route lets pass has no message.
    const isPreflight = !entered.admitted && request.parts.method === 'OPTIONS';
    if (!match?.also || isPreflight) return this.#passOn(received, request, entered);
    this.#passMessages(received, request, { ...entered, match, admitted: entered.admitted! }).catch((error: unknown) =>
      this.#fail(received, error),
    );
    return undefined;
  }

  /** Passes a request on to an MCP server if its key allows all its messages. */
  async #passMessages(
    received: ReceivedRequest,
    request: GuardedRequest,
    entered: AllowedEntry & { readonly match: Match; readonly admitted: Admitted },
  ): Promise<void> {
    const { outgoing, framing, expectsContinue, switching } = received;
    const { method } = request.parts;
    const isPost = method === 'POST';
    const isOther = !isPost && (!['GET', 'DELETE'].includes(method) || hasBody(framing) || switching);
    if (isOther) return refuse(received, notMcp('This is not an MCP request.'), framing);
    if (isPost && expectsContinue) outgoing.writeContinue();
    const expires = setTimeout(() => received.incoming.destroyed || this.#expire(received), this.#options.timeoutMs);
    let read: OrRefusal<JudgedMessages, Reply>;
    try {
      const messages = isPost ? await readMessages(received.incoming) : { messages: [] };
      read = { rules: rulesFor(entered.match), ...messages, ...(await this.#heldBy(received, entered, messages)) };
    } catch (error) {
      if (!(error instanceof RequestRefused)) throw error;
      const { code, message } = error;
      read = { refusal: error instanceof MessagesRefused ? error.reply : errorReply(code, message) };
    } finally {
      clearTimeout(expires);
    }
    // The body can be read only once.
    const left = 'refusal' in read ? framing : [];
    const mcp = 'refusal' in read ? undefined : read;
    const again = await this.#rules.access.again(request, entered);
    if (outgoing.headersSent || outgoing.destroyed) return undefined;
    if ('refusal' in again) return refuse(received, again.refusal, left);
    const admitted = again.admitted ?? entered.admitted;
    const judged = 'refusal' in read ? read : this.#judgeMessages(request, read, admitted.principal);
    // A refused request counts once.
    if (isPost) request.charge = 'charge' in judged ? judged.charge : ONCE;
    const counting = isPost ? this.#rules.access.check.count(request, admitted) : admitted;
    const counted = counting instanceof Promise ? await counting : counting;
    if (outgoing.headersSent || outgoing.destroyed) return undefined;
    if ('refusal' in counted) return refuse(received, counted.refusal, left);
    if ('refusal' in judged) return refuse(received, withFields(judged.refusal, counted.fields), left);
    const passed = { ...entered, admitted: counted };
    // The key may have changed while the store was queried.
    const refusal =
      counting instanceof Promise
        ? this.#refusalIn(await this.#rules.access.again(request, passed), request, mcp)
        : undefined;
    if (outgoing.headersSent || outgoing.destroyed) return undefined;
    if (refusal) return refuse(received, withFields(refusal, counted.fields), []);
    if (!isPost) return this.#passOn(received, request, passed, mcp);
    return this.#passOn({ ...received, framing: [], expectsContinue: false }, request, passed, mcp);
  }

  /** Finds the keys that began the session and tasks of a request. @throws MessagesRefused */
  async #heldBy(
    { incoming, target }: ReceivedRequest,
    { match }: AllowedEntry,
    { messages }: Pick<McpMessages, 'messages'>,
  ): Promise<Pick<JudgedMessages, 'session' | 'tasks'>> {
    const [server, session, tasks] = [
      this.#mcpServer(match, target),
      sessionIn(incoming.rawHeaders),
      tasksIn(messages),
    ];
    if (session === undefined && tasks.length === 0) return { session: undefined, tasks: new Map() };
    const [ofSession = null, ...ofTasks] = await this.#holders.find([
      heldAs('session', server, session ?? ''),
      ...tasks.map((id) => heldAs('task', server, id)),
    ]);
    const held = tasks.flatMap((id, index): [string, Holder][] => (ofTasks[index] ? [[id, ofTasks[index]]] : []));
    return { session: session === undefined ? undefined : ofSession, tasks: new Map(held) };
  }

  #mcpServer(match: Match | undefined, target: RequestTarget): McpServer {
    return { upstream: this.#rules.upstreamOf(match).upstream.name, ...target };
  }

  /** The reply to a request that is no longer allowed. */
  #refusalIn(entry: Entry, request: GuardedRequest, mcp: JudgedMessages | undefined): Reply | undefined {
    if ('refusal' in entry) return entry.refusal;
    if (!mcp || !entry.admitted || !entry.match?.also) return undefined;
    const judged = this.#judgeMessages(request, { ...mcp, rules: rulesFor(entry.match) }, entry.admitted.principal);
    return 'refusal' in judged ? judged.refusal : undefined;
  }

  #expire(received: ReceivedRequest): void {
    if (!received.outgoing.headersSent) refuse(received, requestTimeout(), ENDLESS);
  }

  /** The charge of messages, or the reply if one of them is refused. */
  #judgeMessages(
    request: GuardedRequest,
    mcp: JudgedMessages,
    principal: Principal,
  ): OrRefusal<{ readonly charge: Charge }, Reply> {
    if (mcp.session === null || (mcp.session && !goesOn(mcp.session, principal))) {
      this.#rules.access.note(request, 'mcp', 'a session of another key');
      return { refusal: sessionNotFound() };
    }
    const challenge = (missing: readonly Permission[]) =>
      missing.length > 0
        ? this.#rules.access.check.lacking(request, principal, missing)
        : notMcp('No key is allowed to do this.');
    const judged = judgeMessages(mcp, principal, challenge);
    if ('used' in judged) {
      for (const permission of judged.used) principal.observer?.used(permission);
      for (const tool of judged.tools) principal.observer?.called(tool);
      return judged;
    }
    if (judged.missing.length > 0) principal.observer?.lacked(judged.missing, undefined, judged.tool);
    this.#rules.access.note(request, 'mcp', judged.detail);
    return { refusal: judged.reply };
  }

  #passOn(received: ReceivedRequest, request: GuardedRequest, entered: AllowedEntry, mcp?: JudgedMessages): void {
    const { outgoing } = received;
    const { catalog, isCredential, isOwnCredential, isPassedCredential, clients } = this.#rules;
    const { admitted, permissions, match } = entered;
    const { upstream, credentials, saysWho } = this.#rules.upstreamOf(match);
    const notes = notesOf(received.incoming);
    if (notes) notes.upstream = upstream.name;
    const identity = admitted ? identityHeaders(admitted.principal, permissions, catalog) : NOBODY;
    const { fields } = admitted ?? {};
    let known = entered;
    const refusalIn = (entry: Entry) => {
      const isSame = isJudgedAlike(known, entry);
      // A key that is needed only now is counted now, and that is remembered where none is needed for a while.
      if ('admitted' in entry && entry.admitted) known = entry;
      return isSame ? undefined : this.#refusalIn(entry, request, mcp);
    };
    const refusedNow = () => {
      const entry = this.#rules.access.again(request, known);
      return entry instanceof Promise ? entry.then(refusalIn) : refusalIn(entry);
    };
    const arrived = arrivalOf(request, clients);
    const exchange = this.#proxy.pass(received, {
      ...arrived,
      upstream,
      sent: mcp ? withoutCompression(credentials.now) : credentials.now,
      body: mcp?.body,
      lookThrough:
        mcp &&
        ((answer) =>
          withoutForbidden(answer, mcp.messages, {
            rules: mcp.rules,
            access: () => known.admitted!.principal.access,
            beginsSession: (id) => this.#begins('session', id, received.target, known, mcp),
            beginsTask: (id, tool) => this.#begins('task', id, received.target, known, mcp, tool),
          })),
      identity: Object.entries(identity).flat(),
      isCredential: admitted ? isCredential : isOwnCredential,
      isPassedCredential,
      saysWho,
      fields,
      refusedNow,
    });
    const forget = this.#open.add({ refusedNow, end: (refusal) => exchange.end(refusal) });
    outgoing.once('close', forget);
  }

  /** Notes that a key has begun a session or a task. */
  #begins(
    kind: 'session' | 'task',
    id: string,
    target: RequestTarget,
    { admitted, match }: AllowedEntry,
    { rules, session }: JudgedMessages,
    tool?: string,
  ): void {
    // A server may repeat the id of the session.
    if (!admitted || (kind === 'session' && session)) return;
    const { apiKey, owner, access } = admitted.principal;
    const holder = { keyId: apiKey.id, owner, tool, permissions: tool === undefined ? rules.held(access) : undefined };
    this.#holders.note(heldAs(kind, this.#mcpServer(match, target), id), holder);
  }

  #isHealthCheck(incoming: IncomingMessage, target: OrRefusal<RequestTarget>): boolean {
    const { healthPath } = this.#options;
    if (healthPath === undefined) return false;
    return 'refusal' in target ? isOldHealthCheck(incoming, [healthPath]) : target.path === healthPath;
  }

  async #answerHealth(arrived: ArrivedRequest, framing: Framing): Promise<void> {
    let reply: Reply = jsonReply({ status: 'ok' });
    try {
      await this.#rules.check();
    } catch (error) {
      this.#parts.failures.add(error, notesOf(arrived.incoming)?.id);
      reply = unavailable();
    }
    refuse(arrived, reply, framing);
  }

  #fail(received: ReceivedRequest, error: unknown): void {
    const requestId = notesOf(received.incoming)?.id ?? randomUUID();
    this.#options.log.error({ err: error, requestId }, 'a request failed');
    if (received.outgoing.headersSent) received.outgoing.destroy();
    else refuse(received, internalError(requestId), received.framing);
  }
}

/** A guard that accepts requests. */
export interface RunningGuard extends StartedServer {
  /** See `Guard.prepareRules`. */
  prepareRules(rules: GuardRules): () => void;
}

/** A client's, and that to the upstream for it. */
const DESCRIPTORS_EACH = 2;

/**
 * Starts a guard. When it stops, it finishes requests in progress, and closes connections that switched protocols.
 * @throws KeysError LISTEN_FAILED if the address is not available; TLS_INVALID for a certificate that cannot be used
 */
export async function serveGuard(
  options: Omit<GuardOptions, 'maxConnections'>,
  rules: GuardRules,
  server: ServerOptions,
): Promise<RunningGuard> {
  const connections = affordableConnections(server.limits?.connections, DESCRIPTORS_EACH);
  const guard = new Guard({ ...options, maxConnections: connections }, rules);
  // No overall time-out, because large bodies take long. The guard ends those that stall.
  const limits = { ...server.limits, connections, requestMs: 0 };
  const started = await serveRequests(guard, { ...server, limits });
  return {
    ...started,
    prepareRules: (changed) => guard.prepareRules(changed),
    async stop(graceMs) {
      guard.endTunnels();
      await started.stop(graceMs);
      guard.close();
    },
  };
}
