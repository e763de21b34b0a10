import * as v from 'valibot';
import { grantsOf, invalidProvider } from '../people/people.ts';
import { formatList, isRecord, printable, readDuration, suggestion } from '../../keys/basics/index.ts';
import { normalizeName, validateName } from '../../keys/key/index.ts';
import { DURATION } from '../../config/patterns.ts';
import {
  atMost,
  distinct,
  either,
  json,
  list,
  map,
  optional,
  parsed,
  type Problem,
  reads,
  required,
  rule,
  textWith,
} from '../../config/schema.ts';
import { filePath, section, type SectionContext } from '../../config/section.ts';
import { GRANT, parseGrants } from '../people/parse-grants.ts';
import { MAX_EXCHANGED_SECONDS } from './exchange.ts';
import type { ClaimCondition } from './federation-rule.ts';
import { readKeySet } from './key-set.ts';
import type { TokenIssuer } from './token-issuer.ts';

/** The most rules, and the most claims and values that one names. */
const [MAX_RULES, MAX_VALUES] = [500, 100];
/** The signatures of tokens: never by a secret that both sides have. */
const ALGORITHMS = 'RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA'.split(' ');
const USUAL_ALGORITHMS = ['RS256', 'ES256'];
const [USUAL_TTL_MS, SECOND] = [15 * 60_000, 1000];
/** Bounds of the time that public keys are used without being read again, in milliseconds. */
const [MIN_KEYS_MS, MAX_KEYS_MS] = [60_000, 30 * 86_400_000];

interface Preset {
  /** Undefined for platforms that people host themselves. */
  readonly url?: string;
  /**
   * Lists of claims. A rule must name all claims of one list, because other claims can later belong to someone else.
   */
  readonly demands: readonly (readonly string[])[];
}

/** The platforms whose tokens are known. */
export const PRESETS: Readonly<Record<string, Preset>> = {
  github: {
    url: 'https://token.actions.githubusercontent.com',
    demands: [['repository_id'], ['repository_owner_id']],
  },
  gitlab: { url: 'https://gitlab.com', demands: [['project_id']] },
  buildkite: { url: 'https://agent.buildkite.com', demands: [['pipeline_id'], ['organization_id']] },
  forgejo: { demands: [['repository_id'], ['repository_owner_id']] },
  kubernetes: { demands: [['sub'], ['kubernetes.io.namespace', 'kubernetes.io.serviceaccount.name']] },
  spiffe: { demands: [['sub']] },
};
const PRESET_NAMES = Object.keys(PRESETS);

/** A duration between two bounds, in seconds. */
function secondsWithin(least: number, most: number, message: string) {
  const read = reads<string, number>((given) => {
    const milliseconds = readDuration(given);
    const isRight = milliseconds !== undefined && milliseconds >= least && milliseconds <= most;
    return isRight ? { value: milliseconds / SECOND } : { refusal: message };
  });
  return v.pipe(v.string(message), json(DURATION), read);
}

const filled = textWith((given) => (given.trim() === '' ? 'is empty.' : undefined), {});

const preset = textWith((given) =>
  Object.hasOwn(PRESETS, given)
    ? undefined
    : `"${printable(given)}" is not an issuer. ${suggestion(given, PRESET_NAMES)}The known ones are ` +
      `${formatList(PRESET_NAMES)}; for others, write { url: https://… }.`,
);

/** The file with the public keys of an issuer, which is read at once. */
function keyFile(context: SectionContext) {
  return map({
    file: required(
      v.pipe(
        filePath(context),
        reads<string, string>((file) => {
          try {
            readKeySet(file);
            return { value: file };
          } catch (error) {
            return { refusal: (error as Error).message };
          }
        }),
      ),
    ),
  });
}

function issuerOf(context: SectionContext) {
  const { publicUrl } = context.given;
  const known = PRESET_NAMES.filter((name) => PRESETS[name]!.url !== undefined);
  const jwks = textWith(
    (given) =>
      invalidProvider(given) === undefined
        ? undefined
        : `"${printable(given)}" is not an address of keys: it must begin with https://.`,
    { pattern: '^https?://' },
  );
  const fields = map({
    preset: optional(v.pipe(preset, json({ enum: PRESET_NAMES })), 'A known platform.'),
    url: optional(textWith(invalidProvider, { pattern: '^https?://' }), 'The "iss" of its tokens.', {
      otherwise: 'that of the preset',
    }),
    jwks: optional(
      either([jwks, keyFile(context)], 'must be text, or a map with the field "file".'),
      'Address of its keys, or { file: … }.',
      { otherwise: 'from its metadata' },
    ),
    audience: optional(filled, 'The "aud" of its tokens.', { otherwise: 'publicUrl' }),
    algorithms: optional(
      list(
        textWith(
          (given) =>
            ALGORITHMS.includes(given)
              ? undefined
              : `"${printable(given)}" is not a signing algorithm. Use one of ${formatList(ALGORITHMS)}.`,
          { enum: ALGORITHMS },
        ),
        'The field "algorithms" is empty.',
      ),
      'Allowed signature algorithms.',
      { otherwise: 'RS256 and ES256' },
    ),
    keysMaxAge: optional(
      secondsWithin(MIN_KEYS_MS, MAX_KEYS_MS, 'must be a time from 1m to 30d, such as 1d.'),
      'How long its keys are used when they cannot be read again.',
      { otherwise: '1d' },
    ),
  });
  return v.pipe(
    either(
      [
        v.pipe(
          preset,
          json({ enum: known }),
          v.transform((preset): v.InferOutput<typeof fields> => ({ preset })),
        ),
        v.pipe(fields, json({ anyOf: [{ required: ['preset'] }, { required: ['url'] }] })),
      ],
      `The issuer is ${formatList(PRESET_NAMES, 'or')}, or a map with ${formatList(Object.keys(fields.entries))}.`,
    ),
    reads<v.InferOutput<typeof fields>, { issuer: TokenIssuer; preset: string | undefined }>((issuer) => {
      const { preset, jwks, algorithms = USUAL_ALGORITHMS, keysMaxAge, ...given } = issuer;
      const url = given.url ?? (preset === undefined ? undefined : PRESETS[preset]!.url);
      const audience = given.audience ?? (typeof publicUrl === 'string' ? publicUrl : undefined);
      const form = preset === undefined ? '{ url: https://… }' : `{ preset: ${preset}, url: https://… }`;
      if (url === undefined)
        return { refusal: `The issuer has no address. Write ${form}, with the "iss" of its tokens.` };
      if (audience === undefined)
        return { refusal: 'The "audience" of tokens is unknown. Set "publicUrl" to the address of this service.' };
      const read = { url, jwks, audience, algorithms, ...(keysMaxAge !== undefined && { keysMaxAge }) };
      return { value: { issuer: read, preset } };
    }),
  );
}

const CLAIMS = `A rule needs 1 to ${MAX_VALUES} claims; without one, any token would meet it.`;

/** Reads conditions from a map of claims; nested claims are nested maps. */
function conditionsIn(value: unknown, within: string[] = []): { conditions: ClaimCondition[]; problems: Problem[] } {
  const problems: Problem[] = [];
  const report = (path: readonly (string | number)[], message: string) =>
    problems.push({ path: [...within, ...path], message });
  if (!isRecord(value)) {
    report([], 'The field "when" must be a map of claims to their required values: each a text, or a list of texts.');
    return { conditions: [], problems };
  }
  const claims = Object.entries(value);
  if (claims.length === 0 || claims.length > MAX_VALUES) report([], CLAIMS);
  const conditions = claims.slice(0, MAX_VALUES).flatMap(([claim, given]) => {
    const path = [...within, claim];
    if (isRecord(given) && within.length < 4) {
      const inner = conditionsIn(given, path);
      problems.push(...inner.problems);
      return inner.conditions;
    }
    const values: unknown[] = Array.isArray(given) ? given : [given];
    if (values.length === 0 || values.length > MAX_VALUES)
      report([claim], `A claim has from 1 to ${MAX_VALUES} values.`);
    for (const [index, text] of values.entries()) {
      const at = Array.isArray(given) ? [claim, index] : [claim];
      if (typeof text !== 'string') report(at, 'must be text. Quote it if YAML reads it as another type.');
      else if (text.trim() === '' || text.includes('*'))
        report(at, `"${printable(text)}" is not a valid claim value: claims are compared exactly, without patterns.`);
    }
    return [{ path, values: [...new Set(values as string[])] }];
  });
  return { conditions, problems };
}

const when = v.pipe(
  v.unknown(),
  json({ type: 'object', minProperties: 1, maxProperties: MAX_VALUES }),
  reads<unknown, ClaimCondition[]>((value) => {
    const { conditions, problems } = conditionsIn(value);
    return problems.length > 0 ? { refusal: problems } : { value: conditions };
  }),
);

/** Finds missing claims that a rule must name because only one party can have their values. */
function lackOf(when: readonly ClaimCondition[], preset: string | undefined): Problem | undefined {
  const { demands } = PRESETS[preset ?? ''] ?? {};
  const named = new Set(when.map(({ path }) => path.join('.')));
  if (!demands || demands.some((claims) => claims.every((claim) => named.has(claim)))) return undefined;
  const text = formatList(
    demands.map((claims) => formatList(claims)),
    'or',
  );
  const message = `A rule for ${preset} must name ${text}: someone else could later register the other values.`;
  return { path: ['when'], message };
}

function ruleOf(context: SectionContext) {
  const { catalog } = context;
  const fields = map({
    name: required(
      textWith((name) => validateName(name)?.message),
      'Name of the rule, and of the parent key of the keys that it issues.',
    ),
    issuer: required(issuerOf(context), 'The issuer of the tokens.'),
    when: required(when, 'Claims that a token must have, compared exactly: each a text, or a list of allowed texts.'),
    grant: required(
      parsed(
        (items) => parseGrants(items, catalog),
        GRANT,
        'The rule grants nothing. Name at least one grant, or leave the rule out.',
      ),
      'Grants of issued keys.',
    ),
    ttl: optional(
      secondsWithin(0, MAX_EXCHANGED_SECONDS * SECOND, 'must be a time up to a day, such as 15m.'),
      'Lifetime of issued keys.',
      { otherwise: '15m' },
    ),
    reuse: optional(v.boolean(), 'A token can be used more than once.', { otherwise: 'false' }),
  });
  return v.pipe(
    map(fields.entries, `A rule must be a map with ${formatList(Object.keys(fields.entries))}.`),
    rule(({ when, issuer: { preset } }) => lackOf(when, preset)),
    v.transform(({ name, issuer: { issuer }, when, grant, ttl = USUAL_TTL_MS / SECOND, reuse = false }) => ({
      name: normalizeName(name),
      issuer,
      when,
      grants: grantsOf({ '*': grant }, []),
      ttl,
      reuse,
    })),
  );
}

export const federation = section({
  description: 'Issuers whose tokens, such as those of pipelines, can be exchanged for keys.',
  otherwise: 'none',
  page: 'reference.md#a-pipeline-without-a-secret',
  schema: (context) =>
    v.pipe(
      v.array(ruleOf(context)),
      v.minLength(1, 'The list "federation" is empty. Leave it out.'),
      atMost(MAX_RULES, 'rules'),
      distinct(
        ({ name }) => name,
        (name) => `Two rules have the name "${printable(name)}".`,
        'name',
      ),
    ),
  into: (federation) => ({ federation }),
});
