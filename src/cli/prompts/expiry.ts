import { violationsOfEnd } from '../../keys/authorization/policy.ts';
import { type ExpiryRequest, expiryIn, expiryOf, validateExpiry } from '../../keys/key/expiry.ts';
import type { Catalog } from '../../keys/permissions/catalog.ts';
import { formatDuration } from '../../keys/time.ts';
import { type Option, type Prompts, verdict } from './prompt.ts';

/** Null for another time. */
type Choice = Option<ExpiryRequest | null>;

const CHOICES: readonly Choice[] = [
  { name: 'in 30 days', value: { expiresIn: '30d' } },
  { name: 'in 90 days', value: { expiresIn: '90d' } },
  { name: 'in 1 year', value: { expiresIn: '365d' } },
  { name: 'never', value: {} },
  { name: 'at another time', value: null },
];

/**
 * Asks when a key expires: as the policy allows. A time of one's own is checked as it is given.
 * @param name the key's
 */
export async function askForExpiry(prompts: Prompts, name: string, catalog: Catalog): Promise<ExpiryRequest> {
  const forbidden = (request: ExpiryRequest) => {
    const now = Date.now();
    return violationsOfEnd({ name, expiresAt: expiryOf(request, now) ?? null }, catalog, now)[0];
  };
  const choices = choicesFor(catalog).filter(({ value }) => value === null || forbidden(value) === undefined);
  const chosen = await prompts.select({ message: 'Expires', choices });
  if (chosen) return chosen;
  const text = await prompts.input({
    message: 'Expires in (90m, 12h, 30d) or at (2030-12-31T23:59:59Z)',
    validate: (answer) => {
      const request = expiryIn(answer);
      const [issue] = validateExpiry(request, Date.now());
      return issue ? verdict(issue) : (forbidden(request) ?? true);
    },
  });
  return expiryIn(text);
}

/** With the longest time that the policy allows, if that is another one. */
function choicesFor({ policy: { maxLifetime } }: Catalog): readonly Choice[] {
  const longest = maxLifetime === null ? undefined : formatDuration(maxLifetime);
  if (longest === undefined || CHOICES.some(({ value }) => value?.expiresIn === longest)) return CHOICES;
  return [...CHOICES.slice(0, -2), { name: `in ${longest}`, value: { expiresIn: longest } }, ...CHOICES.slice(-2)];
}
