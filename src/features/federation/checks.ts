import type { CheckAnswer, CheckContext, CheckedStore } from '../../feature.ts';
import { formatList, printable, UNIT_MS } from '../../keys/basics/index.ts';
import { digestPerson } from '../people/people.ts';
import { FEDERATION } from '../people/refuse.ts';
import { KEYS_IN_USE } from '../unused-keys/unused-keys.ts';
import type { FederationRule } from './federation-rule.ts';
import { IssuerKeys } from './issuer-keys.ts';

/** After how long without use a rule may not be needed any more. */
const UNUSED_MS = 90 * UNIT_MS.d;
/** How many rules are named, at most. */
const MAX_NAMED = 100;

/** Checks the rules by which tokens are exchanged: whether they are used, and whether issuers can be reached. */
export async function checkFederation({ config, store, clock }: CheckContext): Promise<CheckAnswer[]> {
  const rules = config?.federation ?? [];
  if (rules.length === 0) return [];
  return [...(store ? [await checkUse(rules, store, clock)] : []), ...(await checkIssuers(rules))];
}

async function checkUse(
  rules: readonly FederationRule[],
  { repository }: CheckedStore,
  clock: () => number,
): Promise<CheckAnswer> {
  const ids = new Map<string, string>();
  for (const rule of rules) {
    const key = (await repository.findByDigest(digestPerson({ issuer: FEDERATION, subject: rule.name })))?.key;
    if (key) ids.set(rule.name, key.id);
  }
  const used = await repository.port(KEYS_IN_USE).find([...ids.values()], clock() - UNUSED_MS);
  const unused = [...ids].filter(([, id]) => !used.has(id)).map(([name]) => `"${printable(name)}"`);
  const never = rules.length - ids.size;
  const exchanging = rules.length === 1 ? '1 rule exchanges' : `${rules.length} rules exchange`;
  if (unused.length === 0) return { status: 'ok', message: `${exchanging} tokens; never used: ${never}.` };
  const what = unused.length === 1 ? '1 rule was' : `${unused.length} rules were`;
  return {
    status: 'warning',
    message: `${what} not used for 90 days: ${formatList(unused.slice(0, MAX_NAMED))}.`,
    remedy: 'Remove the rules that are no longer needed from "federation".',
  };
}

/** Checks that the public keys of each issuer can be read from here. */
async function checkIssuers(rules: readonly FederationRule[]): Promise<CheckAnswer[]> {
  const keys = new IssuerKeys({ clock: Date.now });
  const issuers = new Map(rules.map(({ issuer }) => [JSON.stringify([issuer.url, issuer.jwks]), issuer]));
  const answers = [...issuers.values()].map(async (issuer): Promise<CheckAnswer[]> => {
    const failure = await keys.failureOf(issuer);
    if (failure === undefined) return [];
    return [
      {
        status: 'warning',
        message: `The keys of the issuer ${printable(issuer.url, 200)} cannot be read: ${failure}`,
        remedy:
          'Check that it can be reached. Servers refuse its tokens a day, or "keysMaxAge", after they last read its keys.',
      },
    ];
  });
  return (await Promise.all(answers)).flat();
}
