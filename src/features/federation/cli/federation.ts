import { formatTime, KeysError, printable } from '../../../keys/basics/index.ts';
import { TokenRefused } from '../identified-token.ts';
import type { CommandConfig } from '../../../feature.ts';
import { readText } from '../../../cli/input/input.ts';

/** The reason a token is refused, with details for the operator only. */
function refusalText({ message, cause }: TokenRefused): string {
  return cause instanceof Error ? `${message} The reason: ${cause.message}` : message;
}

/**
 * Explains which rules of the configuration a token meets, and what it lacks for others: as JSON with a fixed list of
 * fields, and as text. The token is verified, but not used up.
 * @param file its path, or `-` for stdin
 * @throws KeysError INPUT_INVALID if it is not a token; CONFIG_…
 */
export async function explainToken({ config }: CommandConfig, file: string) {
  const [{ Federation }, { IssuerKeys }] = await Promise.all([import('../federation.ts'), import('../issuer-keys.ts')]);
  const { federation: rules } = config;
  if (rules.length === 0)
    throw new KeysError('CONFIG_UNAVAILABLE', 'The configuration has no "federation". Pass --config <path>.');
  const token = (await readText(file, file)).trim();
  const federation = new Federation({ rules, keys: new IssuerKeys({ clock: Date.now }), clock: Date.now });
  const judged = await federation.judge(token).catch((error: unknown) => {
    throw error instanceof TokenRefused ? new KeysError('INPUT_INVALID', error.message) : error;
  });
  const { iss, sub, exp } = judged.claims;
  const textOf = (claim: unknown) => (typeof claim === 'string' ? printable(claim, 300) : null);
  const explained = judged.rules.map(({ rule, refused, lacks }) => ({
    name: rule.name,
    met: !refused && lacks.length === 0,
    refused: refused ? refusalText(refused) : null,
    lacks: refused?.reason === 'issuer' ? [] : [...lacks],
  }));
  const json = {
    /** The first that it meets; null if it meets none. */
    rule: explained.find(({ met }) => met)?.name ?? null,
    issuer: textOf(iss),
    subject: textOf(sub),
    expiresAt: typeof exp === 'number' ? formatTime(exp * 1000) : null,
    rules: explained,
  };
  const lines = explained.map(({ name, met, refused, lacks }) => {
    const why = [...(refused === null ? [] : [refused.replace(/\.$/, '')]), ...lacks].join('; ');
    return `${name}: ${met ? 'met' : why}`;
  });
  const result = json.rule === null ? 'The token meets no rule' : `The token meets the rule "${json.rule}"`;
  return { json, text: [result, ...lines].join('\n') };
}
