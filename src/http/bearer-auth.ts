import type { Context, MiddlewareHandler } from 'hono';
import type { Caller } from '../keys/authorization/index.ts';
import type { Admitted, BearerCheck } from './bearer-check.ts';
import { aFunction, type BearerAuthOptions, type RefusalReply } from './bearer-options.ts';
import { HonoHead, type Received } from './received.ts';
import { errorBody, type RateLimitFields } from './replies.ts';
import { type Accepted, AddressedHead, type RefusedRequest, RequestChecker } from './request-check.ts';

/** What a request has that was accepted, by Express, Fastify or Node alone. */
export interface Authenticated {
  /** The authenticated key. */
  principal: Caller;
  /**
   * Checks the key again, as it is now: the one that was accepted may have been deleted while its body arrived. Call it
   * once the body has been read. If the key must be refused, answers the request, and resolves to false; otherwise
   * `principal` is up to date.
   */
  checkAgain(): Promise<boolean>;
}

/** The variables that the middleware sets. */
export interface BearerEnv {
  /** See Hono's `Env`. */
  Variables: {
    /** The authenticated key. */
    principal: Caller;
    /**
     * Checks the key again, as it is now: the one that was accepted may have been deleted while its body arrived. Call
     * it once the body has been read. Returns the reply if the request must be refused; otherwise `principal` is up to
     * date.
     */
    checkAgain: () => Promise<Response | undefined>;
  };
}

/** The options of `bearerAuth` for Hono. */
type HonoAuthOptions = BearerAuthOptions & {
  /**
   * The address of a request's client, where Node does not tell it: in another runtime, or behind another framework.
   * Headers of proxies are not looked at then. Default: that of the connection.
   */
  address?: (c: Context) => string | undefined;
};

/** A variable of our own: a function, since it has the secret, and programs log all variables. */
const ADMITTED = 'svc-api.admitted';

/** What `bearerAuth` has found out about a request that it accepted. */
export function admissionOf(c: Context): Admitted {
  return (c.get(ADMITTED as never) as () => Admitted)();
}

/**
 * Hono middleware that accepts only requests with a valid API key (RFC 6750), and checks it before the body is read.
 * No credentials: 401. A malformed header: 400 `invalid_request`. A key that is not valid, for whatever reason: 401
 * `invalid_token`. A key without the permission: 403 `insufficient_scope`. A store that does not answer: 503.
 *
 * @example
 * const keys = await openKeys();
 * const app = new Hono().use(bearerAuth({ keys })).get('/', (c) => c.text(c.get('principal').apiKey.name));
 * @example
 * app.post('/restart', async (c) => {
 *   const { service } = await c.req.json();
 *   return (await c.get('checkAgain')()) ?? restart(c, service);
 * });
 */
export function bearerAuth(options: HonoAuthOptions): MiddlewareHandler<BearerEnv> {
  const checker = RequestChecker.of<HonoAuthOptions>(options, { address: aFunction });
  const { address } = options;
  return bearerAuthBy(checker, address && ((c) => new AddressedHead(new HonoHead(c), address(c))));
}

/** The same for the service itself: its refusals have the form of all its errors. */
export function ownBearerAuth(check: BearerCheck): MiddlewareHandler<BearerEnv> {
  const onRefused = ({ message, code }: RefusalReply) => errorBody(message, code);
  return bearerAuthBy(new RequestChecker(check, { onRefused }));
}

function bearerAuthBy(
  checker: RequestChecker,
  headOf: (c: Context) => Received = (c) => new HonoHead(c),
): MiddlewareHandler<BearerEnv> {
  return (c, next) => {
    const enter = (checked: Accepted | RefusedRequest) => {
      if (!checked.ok) return Promise.resolve(respond(c, checked));
      c.set('principal', checked.principal);
      c.set(ADMITTED as never, (() => checked.admitted) as never);
      c.set('checkAgain', async () => {
        const again = await checked.checkAgain();
        if (!again.ok) return respond(c, again);
        c.set('principal', again.principal);
        return undefined;
      });
      const { fields } = checked.admitted;
      if (!fields) return next() as Promise<never>;
      setFields(c, fields);
      return next().then(() => setFields(c, fields));
    };
    const checked = checker.enter(headOf(c));
    return checked instanceof Promise ? checked.then(enter) : enter(checked);
  };
}

function respond(c: Context, { body, status, headers }: RefusedRequest): Response {
  return c.body(body, status as 401, headers);
}

/**
 * Before there is an answer: to change the headers of one takes as long as the check. Again once there is one: it has
 * them not if it was made elsewhere.
 */
function setFields(c: Context, fields: RateLimitFields): undefined {
  for (const [name, value] of Object.entries(fields))
    if (!c.finalized || c.res.headers.get(name) !== value) c.header(name, value);
}
