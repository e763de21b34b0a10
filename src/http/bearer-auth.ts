import type { Context, MiddlewareHandler } from 'hono';
import type { Caller, Principal } from '../keys/authorization/index.ts';
import type { Admitted, BearerCheck } from './bearer-check.ts';
import { aFunction, type BearerAuthOptions, type RefusalReply } from './bearer-options.ts';
import { HonoHead, type Received } from './received.ts';
import { errorBody, type RateLimitFields } from './replies.ts';
import { type Accepted, AddressedHead, type RefusedRequest, RequestChecker } from './request-check.ts';

/** The variables of the service's own endpoints, whose principal can change keys. */
export interface OwnBearerEnv {
  Variables: BearerEnv['Variables'] & { principal: Principal };
}

/** Properties of an accepted request in Express, Fastify or plain Node. */
export interface Authenticated {
  /** The authenticated key. */
  principal: Caller;
  /**
   * Checks the key again: it may have been deleted while the body arrived. Call it after reading the body. If the key
   * is refused, it answers the request and resolves to false; otherwise `principal` is up to date.
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
     * Checks the key again: it may have been deleted while the body arrived. Call it after reading the body. Returns
     * the reply if the request must be refused; otherwise `principal` is up to date.
     */
    checkAgain: () => Promise<Response | undefined>;
  };
}

/** The options of `bearerAuth` for Hono. */
type HonoAuthOptions = BearerAuthOptions & {
  /**
   * The address of a request's client, if Node does not know it: in another runtime, or behind another framework.
   * Headers of proxies are then ignored. Default: that of the connection.
   */
  address?: (c: Context) => string | undefined;
};

/** A variable of our own. It is a function, since it holds the secret and programs log all variables. */
const ADMITTED = 'svc-api.admitted';

/** The result of `bearerAuth` for an accepted request. */
export function admissionOf(c: Context): Admitted {
  return (c.get(ADMITTED as never) as () => Admitted)();
}

/**
 * Hono middleware that accepts only requests with a valid API key (RFC 6750), checked before the body is read. No
 * credentials: 401. A malformed header: 400 `invalid_request`. A key that is not valid, for any reason: 401
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

/** Middleware for the service itself: refusals have the form of all its errors. */
export function ownBearerAuth(check: BearerCheck): MiddlewareHandler<OwnBearerEnv> {
  const onRefused = ({ message, code }: RefusalReply) => errorBody(message, code);
  return bearerAuthBy(new RequestChecker(check, { onRefused })) as MiddlewareHandler;
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
 * Sets headers before there is an answer, since changing those of an answer takes as long as the check. Sets them again
 * once there is one, which may have been made without them.
 */
function setFields(c: Context, fields: RateLimitFields): undefined {
  for (const [name, value] of Object.entries(fields))
    if (!c.finalized || c.res.headers.get(name) !== value) c.header(name, value);
}
