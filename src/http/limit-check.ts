import type { Authenticator } from '../keys/authentication/authenticator.ts';
import type { Principal } from '../keys/authorization/principal.ts';
import type { Restrictions } from '../keys/authorization/restrictions.ts';
import { prefixOf } from '../keys/secret/secret.ts';
import type { Standing } from '../limits/allowance.ts';
import type { Answer, Limiter } from '../limits/limiter.ts';
import type { Received } from './client-address.ts';
import type { FailureLog } from './failure-log.ts';
import { type RateLimitFields, rateLimitFields, secondsUntil } from './rate-limit-fields.ts';
import { errorReply, type Reply, unavailable } from './replies.ts';
import type { Told } from './request-observer.ts';

/** What came of holding a request to the restrictions of its key; `gone` if that was deleted meanwhile. */
export type Held = { readonly fields: RateLimitFields | undefined } | { readonly refusal: Reply } | 'gone';

/** What a check of limits needs from outside. */
export interface LimitCheckOptions {
  limiter: Limiter;
  told: Told;
  failures: FailureLog;
  /** Records a refused request of a key. */
  noteRefusal: Authenticator['noteRefusal'];
}

/** Holds requests to the restrictions of their keys: where they may come from, and how many there may be. */
export class LimitCheck {
  readonly #options: LimitCheckOptions;

  constructor(options: LimitCheckOptions) {
    this.#options = options;
  }

  /** Counts a request that has just arrived, if it may come from there. */
  enter(principal: Principal, restrictions: Restrictions, request: Received): Held | Promise<Held> {
    const refusal = this.refuseAddress(principal, restrictions, request);
    if (refusal) return { refusal };
    if (restrictions.limits.length === 0) return { fields: undefined };
    const answer = this.#options.limiter.enter(restrictions);
    if (!(answer instanceof Promise)) return this.#heldBy(answer, principal, request);
    return answer.then(
      (decided) => this.#heldBy(decided, principal, request),
      (error: unknown) => {
        this.#options.failures.add(error, request.notes?.id);
        return { refusal: unavailable() };
      },
    );
  }

  /**
   * The reply to a request that may not come from where it does, or of which it is not certain where that is.
   * @param usedAt when it was counted as a use before, in milliseconds since 1970
   */
  refuseAddress(
    principal: Principal,
    { networks }: Restrictions,
    request: Received,
    usedAt?: number,
  ): Reply | undefined {
    if (networks.length === 0) return undefined;
    const { address, isCertain } = this.#options.told.clients.of(request);
    if (isCertain && address !== undefined && networks.every((network) => network.includes(address))) return undefined;
    this.#tell('request forbidden', principal, 'address', request, { address, usedAt });
    return errorReply(403, 'FORBIDDEN', 'This key may not be used from this address.');
  }

  #heldBy(answer: Answer, principal: Principal, request: Received): Held {
    if (answer === 'gone') return answer;
    const { isWithin, standings } = answer;
    if (isWithin) return { fields: rateLimitFields(standings) };
    const { address } = this.#options.told.clients.of(request);
    this.#tell('request limited', principal, 'limited', request, { address });
    return { refusal: overLimit(standings) };
  }

  #tell(
    message: string,
    principal: Principal,
    reason: 'address' | 'limited',
    request: Received,
    { address, usedAt }: { address: string | undefined; usedAt?: number | undefined },
  ): void {
    const { told, noteRefusal } = this.#options;
    told.refusals.add(message, { reason, prefix: prefixOf(principal.apiKey.publicId), address }, request.notes);
    noteRefusal(principal, reason, address, usedAt);
  }
}

/** The reply to a request whose key is not valid, as those of too many others were from its address. */
export function tooManyFailures(wait: number): Reply {
  const seconds = secondsUntil(wait);
  const message = `Too many requests from here had API keys that are not valid. Try again in ${inWords(seconds)}.`;
  return errorReply(429, 'RATE_LIMITED', message, { 'Retry-After': `${seconds}` });
}

function inWords(seconds: number): string {
  return `${seconds} ${seconds === 1 ? 'second' : 'seconds'}`;
}

/** The reply to a request over a limit: of those that are used up, the one that takes longest. */
function overLimit(standings: readonly Standing[]): Reply {
  const fewest = Math.min(...standings.map(({ remaining }) => remaining));
  // What others have leased may have come back since, but was not asked for again yet.
  const known = standings.map((standing) => (standing.remaining === fewest ? { ...standing, remaining: 0 } : standing));
  const [longest] = known.filter(({ remaining }) => remaining === 0).toSorted((a, b) => b.moreIn - a.moreIn);
  const seconds = secondsUntil(longest!.moreIn);
  const message = `The limit of ${longest!.limit} is used up. Try again in ${inWords(seconds)}.`;
  return errorReply(429, 'RATE_LIMITED', message, { 'Retry-After': `${seconds}`, ...rateLimitFields(known) });
}
