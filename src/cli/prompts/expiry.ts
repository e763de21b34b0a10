import { input, select } from '@inquirer/prompts';
import { type ExpiryRequest, expiryIn, validateExpiry } from '../../keys/key/expiry.ts';
import { listSize, ON_STDERR, verdict } from './prompt.ts';

const CHOICES: readonly { name: string; value: ExpiryRequest | null }[] = [
  { name: 'in 30 days', value: { expiresIn: '30d' } },
  { name: 'in 90 days', value: { expiresIn: '90d' } },
  { name: 'in 1 year', value: { expiresIn: '365d' } },
  { name: 'never', value: {} },
  { name: 'at another time', value: null },
];

/** Asks when a key expires. A time of one's own is checked as it is given. */
export async function askForExpiry(): Promise<ExpiryRequest> {
  const chosen = await select({ message: 'Expires', choices: CHOICES, pageSize: listSize() }, ON_STDERR);
  if (chosen) return chosen;
  const text = await input(
    {
      message: 'Expires in (90m, 12h, 30d) or at (2030-12-31T23:59:59Z)',
      validate: (answer) => verdict(validateExpiry(expiryIn(answer), Date.now())[0]),
    },
    ON_STDERR,
  );
  return expiryIn(text);
}
