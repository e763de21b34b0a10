import type { IncomingMessage, ServerResponse } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import type { Hono } from 'hono';
import { answersOfTurn } from './answers-of-turn.ts';
import type { ServiceApp } from './app.ts';
import { ClientAddresses } from './client-address.ts';
import { GraphQLRoutes } from './graphql-routes.ts';
import { isOldHealthCheck } from './health.ts';
import { answerByNode } from './node-adapter.ts';
import { answerFailedRequest, refuseAmbiguous } from './refused-requests.ts';

type FetchCallback = Parameters<typeof getRequestListener>[0];
type Answer = (incoming: IncomingMessage, outgoing: ServerResponse) => unknown;

/** An app as a server hands requests to it. */
export class ServedApp {
  /** See `ServiceApp`; other apps have none. */
  readonly logs: Partial<Pick<ServiceApp, 'refusals' | 'failures'>>;
  /** See `ServiceApp`. */
  readonly answerProxy: ServiceApp['answerProxy'];
  /** Finds out where requests come from. */
  readonly clients: ClientAddresses;
  readonly #routes: GraphQLRoutes;
  readonly #answer: Answer;
  readonly #answerWithoutHost: Answer;

  // oxlint-disable-next-line typescript/no-explicit-any -- an app of any environment
  constructor(app: Hono<any>) {
    const options = { errorHandler: answerFailedRequest, overrideGlobalObjects: false };
    this.logs = app as Partial<ServiceApp>;
    this.answerProxy = (app as Partial<ServiceApp>).answerProxy ?? (() => false);
    this.clients = (app as Partial<ServiceApp>).addresses ?? new ClientAddresses();
    this.#routes = new GraphQLRoutes(app);
    const hold = (answer: Response) => answersOfTurn.hold(answer);
    const fetch: FetchCallback = (...asked) => {
      const answer = app.fetch(...(asked as Parameters<typeof app.fetch>));
      return answer instanceof Promise ? answer.then(hold) : hold(answer);
    };
    this.#answer = getRequestListener(fetch, options);
    this.#answerWithoutHost = getRequestListener(fetch, { ...options, hostname: 'localhost' });
  }

  handle(incoming: IncomingMessage, outgoing: ServerResponse): void {
    if (this.answerProxy(incoming, outgoing)) return;
    const pipeline = this.#routes.find(incoming);
    if (pipeline && answerByNode(pipeline, incoming, outgoing)) return;
    if (refuseAmbiguous(incoming, outgoing)) return;
    if (isOldHealthCheck(incoming)) this.#answerWithoutHost(incoming, outgoing);
    else this.#answer(incoming, outgoing);
  }

  /** Logs what was only counted. */
  finishLogs(): void {
    this.logs.refusals?.finish();
    this.logs.failures?.finish();
  }
}
