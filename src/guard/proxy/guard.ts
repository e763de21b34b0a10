import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type CheckParts, partsOf } from '../../http/bearer-options.ts';
import type { ClientAddresses } from '../../http/client-address.ts';
import type { Endpoint } from '../../http/endpoints.ts';
import { FailureLog } from '../../http/failure-log.ts';
import { isOldHealthCheck } from '../../http/health.ts';
import { atPeriodEnd } from '../../http/periods.ts';
import { internalError, jsonReply, type Reply, unavailable } from '../../http/replies.ts';
import { notesOf } from '../../http/request-notes.ts';
import type { ConnectionHandler, RequestHandler } from '../../http/serve-requests.ts';
import type { Log } from '../../log.ts';
import { identityHeaders, NOBODY } from '../identity-headers.ts';
import { type Entered, type Entry, GuardedRequest } from './access.ts';
import { type Framing, requestFraming } from './framing.ts';
import { OpenExchanges } from './open-exchanges.ts';
import type { ArrivedRequest, BareConnection, ReceivedRequest } from './received.ts';
import { badRequest, ENDLESS, methodNotAllowed, refuse } from './replies.ts';
import { readTarget, type RequestTarget } from './request-target.ts';
import { ReverseProxy, type ReverseProxyOptions } from './reverse-proxy.ts';
import { type AppliedRules, applyRules, type GuardRules } from './rules.ts';
import { protocolOf } from './tunnel.ts';

/** What is guarded, and how. */
export interface GuardOptions extends Omit<ReverseProxyOptions, 'failed'> {
  /** Whether the upstream gets the key, too. */
  readonly passCredential: boolean;
  /** The path at which the guard says whether it can let anybody pass; undefined for none. */
  readonly healthPath?: string | undefined;
  readonly log: Log;
}

/** Methods for proxies that clients choose: to pass them on would do harm. */
const REFUSED_METHODS: ReadonlySet<string | undefined> = new Set(['CONNECT', 'TRACE']);

/** A reverse proxy that lets only requests with an API key pass. */
export class Guard implements RequestHandler, ConnectionHandler {
  readonly connections = this;
  readonly #options: GuardOptions;
  readonly #proxy: ReverseProxy;
  #rules: AppliedRules;
  readonly #open = new OpenExchanges();
  /** Connections that close after the present answer. */
  readonly #closing = new WeakSet<Socket>();
  #parts: CheckParts;
  readonly #upstreamFailures: FailureLog;

  constructor(options: GuardOptions, rules: GuardRules) {
    const { log } = options;
    this.#options = options;
    this.#parts = partsOf({ log });
    this.#upstreamFailures = new FailureLog(log, atPeriodEnd, 'the upstream did not answer');
    this.#proxy = new ReverseProxy({ ...options, failed: (...failure) => this.#upstreamFailures.add(...failure) });
    this.#rules = this.#apply(rules);
  }

  /** Goes on by other rules, which also decide about what is open. */
  changeRules(rules: GuardRules): void {
    this.#rules = this.#apply(rules);
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
    return this.#isHealthCheck(incoming, readTarget(incoming)) ? 'health' : 'guard';
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

  /** Ends what would never end by itself, so that the server can stop. */
  endTunnels(): void {
    this.#proxy.endTunnels();
  }

  /** Closes the connections to the upstream, and logs what was only counted. */
  close(): void {
    this.#proxy.close();
    for (const log of [this.#parts.refusals, this.#parts.failures, this.#upstreamFailures]) log.finish();
  }

  #apply(rules: GuardRules): AppliedRules {
    const { log, passCredential } = this.#options;
    const { failedCredentials } = rules;
    this.#parts = partsOf({ log, ...(failedCredentials !== undefined && { failedCredentials }) }, this.#parts);
    return applyRules(rules, this.#parts, passCredential);
  }

  #handle(incoming: IncomingMessage, outgoing: ServerResponse, expectsContinue: boolean): void {
    const { socket } = incoming;
    if (this.#closing.has(socket)) return;
    const closeAfter = () => {
      this.#closing.add(socket);
      outgoing.shouldKeepAlive = false;
    };
    // Where a protocol is not switched, Node drops what the client has sent behind the request.
    if (incoming.headers.upgrade !== undefined) closeAfter();
    this.#receive({ incoming, outgoing, closeAfter }, { expectsContinue, switching: undefined });
  }

  #receive(arrived: ArrivedRequest, wish: Pick<ReceivedRequest, 'expectsContinue' | 'switching'>): void {
    const { incoming } = arrived;
    const framing = requestFraming(incoming);
    if (!framing) return refuse(arrived, badRequest('The length of the body is not clear.'), ENDLESS);
    if (REFUSED_METHODS.has(incoming.method)) return refuse(arrived, methodNotAllowed(incoming.method!), framing);
    const target = readTarget(incoming);
    if (this.#isHealthCheck(incoming, target)) return void this.#answerHealth(arrived, framing);
    if (typeof target === 'string') return refuse(arrived, badRequest(target), framing);
    const received = { ...arrived, ...wish, target, framing };
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
    const settle = (entry: Entry) => {
      if ('refusal' in entry) refuse(received, entry.refusal, framing);
      else if (!outgoing.destroyed) this.#pass(received, request, entry);
    };
    const entry = this.#rules.access.enter(request);
    if (entry instanceof Promise) entry.then(settle).catch((error: unknown) => this.#fail(received, error));
    else settle(entry);
  }

  #pass(received: ReceivedRequest, request: GuardedRequest, entered: Entered): void {
    const { outgoing } = received;
    const { catalog, isCredential, trust } = this.#rules;
    const { admitted, permissions } = entered;
    const identity = admitted ? identityHeaders(admitted.principal, permissions, catalog) : NOBODY;
    const { fields } = admitted ?? {};
    let known = entered;
    const refusalIn = (entry: Entry) => {
      // A key that is needed only now is counted now, and that is remembered where none is needed for a while.
      if ('admitted' in entry && entry.admitted) known = entry;
      return 'refusal' in entry ? entry.refusal : undefined;
    };
    const refusedNow = () => {
      const entry = this.#rules.access.again(request, known);
      return entry instanceof Promise ? entry.then(refusalIn) : refusalIn(entry);
    };
    const passing = { identity: Object.entries(identity).flat(), isCredential, trust, fields, refusedNow };
    const exchange = this.#proxy.pass(received, passing);
    const forget = this.#open.add({ refusedNow, end: (refusal) => exchange.end(refusal) });
    outgoing.once('close', forget);
  }

  #isHealthCheck(incoming: IncomingMessage, target: RequestTarget | string): boolean {
    const { healthPath } = this.#options;
    if (healthPath === undefined) return false;
    return typeof target === 'string' ? isOldHealthCheck(incoming, [healthPath]) : target.path === healthPath;
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
