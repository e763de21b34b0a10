import type { OrRefusal } from '../keys/basics/index.ts';
import { NOT_YET, type Principal, type Restrictions } from '../keys/authorization/index.ts';
import { prefixOf } from '../keys/secret/index.ts';
import type { Answer, Standing } from '../limits/index.ts';
import {
  type ErrorReply,
  errorReply,
  rateLimitFields,
  type RateLimitFields,
  secondsUntil,
  unavailable,
} from './replies.ts';
import type { Received } from './received.ts';
import type { CheckContext } from './request-observer.ts';

/** The result of checking a request against its key's restrictions; `gone` if the key was deleted during the check. */
export type LimitDecision = OrRefusal<{ readonly fields: RateLimitFields | undefined }, ErrorReply> | 'gone';

/** Enforces the restrictions of keys: the networks and the number of their requests. */
export class LimitCheck {
  readonly #context: CheckContext;

  constructor(context: CheckContext) {
    this.#context = context;
  }

  /**
   * Counts a new request if its network is allowed.
   * @param usedAt when it was counted as a use before, in milliseconds since 1970
   */
  enter(
    principal: Principal,
    restrictions: Restrictions,
    request: Received,
    usedAt?: number,
  ): LimitDecision | Promise<LimitDecision> {
    const refusal = this.refuseAddress(principal, restrictions, request, usedAt);
    if (refusal) return { refusal };
    if (restrictions.limits.length === 0) return { fields: undefined };
    const { limiter } = this.#context;
    if (request.charge === NOT_YET && !limiter.isUsedUp(restrictions)) return { fields: undefined };
    const answer = limiter.enter(restrictions);
    if (!(answer instanceof Promise)) return this.#decideByLimits(answer, principal, request, usedAt);
    return answer.then(
      (decided) => this.#decideByLimits(decided, principal, request, usedAt),
      (error: unknown) => {
        this.#context.failures.add(error, request.notes?.id);
        return { refusal: unavailable() };
      },
    );
  }

  /**
   * The reply to a request from an address that is not allowed, or that is uncertain.
   * @param usedAt when it was counted as a use before, in milliseconds since 1970
   */
  refuseAddress(
    principal: Principal,
    { networks }: Restrictions,
    request: Received,
    usedAt?: number,
  ): ErrorReply | undefined {
    if (networks.length === 0) return undefined;
    const { address, isCertain, unclear } = this.#context.clients.of(request);
    if (isCertain && address !== undefined && networks.every((network) => network.includes(address))) return undefined;
    this.noteRefused('request forbidden', 'address', principal, request, usedAt, unclear);
    return errorReply('FORBIDDEN', 'This key cannot be used from this address.');
  }

  #decideByLimits(answer: Answer, principal: Principal, request: Received, usedAt: number | undefined): LimitDecision {
    if (answer === 'gone') return answer;
    const { isWithin, standings } = answer;
    if (isWithin) return { fields: rateLimitFields(standings) };
    this.noteRefused('request limited', 'limited', principal, request, usedAt);
    return { refusal: overLimit(standings) };
  }

  /** Records a refused request of a valid key. @param detail details for the log */
  noteRefused(
    message: string,
    reason: 'address' | 'limited' | 'audience',
    principal: Principal,
    request: Received,
    usedAt?: number,
    detail?: string,
  ): void {
    const { refusals, clients, authenticator } = this.#context;
    const { address } = clients.of(request);
    const refused = { reason, prefix: prefixOf(principal.apiKey.publicId), address };
    refusals.add(message, detail === undefined ? refused : { ...refused, detail }, request.notes);
    authenticator.noteRefusal(principal, reason, address, usedAt);
  }
}

/** The reply to an invalid key after too many others from its address. */
export function tooManyFailures(waitUs: number): ErrorReply {
  const seconds = secondsUntil(waitUs);
  const message = `Too many requests with invalid API keys from your address. Try again in ${inWords(seconds)}.`;
  return errorReply('RATE_LIMITED', message, { 'Retry-After': `${seconds}` });
}

function inWords(seconds: number): string {
  return `${seconds} ${seconds === 1 ? 'second' : 'seconds'}`;
}

/** The reply to a request over a limit, about the exhausted limit with the longest wait. */
function overLimit(standings: readonly Standing[]): ErrorReply {
  const fewest = Math.min(...standings.map(({ remaining }) => remaining));
  const isShort = ({ remaining, weight }: Standing) => remaining < weight;
  // If none is known to be short, other processes hold leases, which may have been returned in the meantime.
  const known = standings.some(isShort)
    ? standings
    : standings.map(({ ...each }) =>
        each.remaining === fewest
          ? { ...each, remaining: 0, waitUs: Number.isFinite(each.moreIn) ? each.moreIn : 0 }
          : each,
      );
  const [longest] = known.filter(isShort).toSorted((a, b) => b.waitUs - a.waitUs);
  const { limit, count, unit, remaining, weight, waitUs } = longest!;
  const fields = rateLimitFields(known);
  const costs =
    weight > 1 ? ` The request counts as ${weight}, and ${remaining} ${remaining === 1 ? 'is' : 'are'} left.` : '';
  if (waitUs === Infinity)
    return errorReply('BUDGET_SPENT', `${usedUpText(unit, count)}${costs} Waiting does not help.`, fields);
  if (weight > count)
    return errorReply('RATE_LIMITED', `The request counts as ${weight}, more than the limit of ${limit}.`, fields);
  const seconds = secondsUntil(waitUs);
  const message = `The limit of ${limit} is used up.${costs} Try again in ${inWords(seconds)}.`;
  return errorReply('RATE_LIMITED', message, { 'Retry-After': `${seconds}`, ...fields });
}

function usedUpText(unit: Standing['unit'], count: number): string {
  if (unit === 'budget') return `The budget of ${count} is spent.`;
  return count === 1 ? 'The only use of the key is spent.' : `All ${count} uses of the key are spent.`;
}
