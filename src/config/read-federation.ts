import { grantsOf, invalidProvider } from '../keys/authentication/index.ts';
import { type DocumentPath, formatList, isRecord, printable, readDuration, suggestion } from '../keys/basics/index.ts';
import {
  type ClaimCondition,
  type FederationRule,
  MAX_EXCHANGED_SECONDS,
  readKeySet,
  type TokenIssuer,
} from '../keys/consent/index.ts';
import { normalizeName, validateName } from '../keys/key/index.ts';
import type { Catalog } from '../keys/permissions/index.ts';
import type { ConfigReader } from './config-reader.ts';
import { parseGrants } from './read-people.ts';

/** The fields of a rule of `federation`, and of its issuer. */
export const RULE_FIELDS = ['name', 'issuer', 'when', 'grant', 'ttl', 'reuse'] as const;
export const ISSUER_FIELDS = ['preset', 'url', 'jwks', 'audience', 'algorithms', 'keysMaxAge'] as const;
type IssuerField = (typeof ISSUER_FIELDS)[number];
/** The most rules, and the most claims and values that one names. */
export const [MAX_RULES, MAX_VALUES] = [500, 100];
/** By what tokens may be signed: never by a secret that both sides have. */
export const ALGORITHMS = 'RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA'.split(' ');
const USUAL_ALGORITHMS = ['RS256', 'ES256'];
const [USUAL_TTL_MS, SECOND] = [15 * 60_000, 1000];
/** How soon and how late public keys that could not be read again can go out of use, in milliseconds. */
const [MIN_KEYS_MS, MAX_KEYS_MS] = [60_000, 30 * 86_400_000];

interface Preset {
  /** Undefined for what everybody runs themselves. */
  readonly url?: string;
  /** The claims of which a rule names all of one list: what else a token says may come to be somebody else's. */
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

interface Context {
  /** With all resources and roles. */
  readonly catalog: Catalog;
  /** The address of the service, which tokens are for; undefined if it is not said. */
  readonly publicUrl: string | undefined;
}

/** Reads which tokens are exchanged for which keys. */
export function readFederation(reader: ConfigReader, value: unknown, context: Context): FederationRule[] {
  const list = reader.list(value, ['federation']);
  reader.refuseEmpty(value, ['federation'], 'The list "federation" is empty. Leave it out.');
  const rules = reader
    .firstOf(list, ['federation'], MAX_RULES, 'rules')
    .flatMap((rule, index) => readRule(reader, rule, index, context) ?? []);
  const names = new Map<string, number>();
  for (const [index, { name }] of rules.entries()) {
    if (names.has(name))
      reader.report(['federation', index, 'name'], `There are two rules called "${printable(name)}".`);
    names.set(name, index);
  }
  return rules;
}

function readRule(reader: ConfigReader, value: unknown, index: number, context: Context): FederationRule | undefined {
  const path = ['federation', index];
  if (!isRecord(value)) return reader.report(path, `A rule must be a map with ${formatList(RULE_FIELDS)}.`);
  const fields = reader.knownFields(value, path, RULE_FIELDS);
  for (const field of ['name', 'issuer', 'when', 'grant'] as const)
    if (fields[field] === undefined) reader.missing(path, field);
  const name = reader.optionalText(fields.name, [...path, 'name']);
  const problem = name === undefined ? undefined : validateName(name)?.message;
  if (problem !== undefined) reader.report([...path, 'name'], problem);
  const issuer =
    fields.issuer === undefined ? undefined : readIssuer(reader, fields.issuer, [...path, 'issuer'], context);
  const when = fields.when === undefined ? [] : readWhen(reader, fields.when, [...path, 'when']);
  if (issuer && fields.when !== undefined) requireDemanded(reader, when, issuer.preset, [...path, 'when']);
  const granted = reader.parsedList(fields.grant, [...path, 'grant'], (items) => parseGrants(items, context.catalog));
  const nothing = 'The rule grants nothing. Name at least one grant, or leave the rule out.';
  reader.refuseEmpty(fields.grant, [...path, 'grant'], nothing);
  const { ttl = `${USUAL_TTL_MS / SECOND}s` } = fields;
  const milliseconds = typeof ttl === 'string' ? readDuration(ttl) : undefined;
  if (milliseconds === undefined || milliseconds > MAX_EXCHANGED_SECONDS * SECOND)
    reader.report([...path, 'ttl'], 'The field "ttl" must be a time up to a day, such as 15m.');
  const reuse = reader.isTrue(fields.reuse, [...path, 'reuse']);
  if (!issuer || name === undefined) return undefined;
  const ofRule = { issuer: issuer.issuer, when, grants: grantsOf({ '*': granted }, []) };
  return { name: normalizeName(name), ...ofRule, ttl: (milliseconds ?? 0) / SECOND, reuse };
}

function readIssuer(
  reader: ConfigReader,
  value: unknown,
  path: DocumentPath,
  { publicUrl }: Context,
): { issuer: TokenIssuer; preset: string | undefined } | undefined {
  if (typeof value !== 'string' && !isRecord(value))
    return reader.report(
      path,
      `The issuer is ${formatList(PRESET_NAMES, 'or')}, or a map with ${formatList(ISSUER_FIELDS)}.`,
    );
  const isName = typeof value === 'string';
  const fields: Partial<Record<IssuerField, unknown>> = isName
    ? { preset: value }
    : reader.knownFields(value, path, ISSUER_FIELDS);
  const at = (field: string) => (isName ? path : [...path, field]);
  const textOf = (field: IssuerField) => {
    const text = reader.optionalText(fields[field], at(field));
    if (text?.trim() !== '') return text;
    return reader.report(at(field), `The field "${field}" is empty.`);
  };
  const [preset, givenUrl, givenAudience] = [textOf('preset'), textOf('url'), textOf('audience')];
  const jwks = isRecord(fields.jwks) ? readKeyFile(reader, fields.jwks, at('jwks')) : textOf('jwks');
  if (preset !== undefined && !Object.hasOwn(PRESETS, preset)) {
    const known = `Those that are known are ${formatList(PRESET_NAMES)}; of another one, write { url: https://… }.`;
    return reader.report(
      at('preset'),
      `"${printable(preset)}" is not an issuer. ${suggestion(preset, PRESET_NAMES)}${known}`,
    );
  }
  const url = givenUrl ?? (preset === undefined ? undefined : PRESETS[preset]!.url);
  if (url === undefined) {
    const form = preset === undefined ? '{ url: https://… }' : `{ preset: ${preset}, url: https://… }`;
    return reader.report(path, `It is not said whose tokens are meant. Write ${form}, with the "iss" of the tokens.`);
  }
  const invalid = invalidProvider(url);
  if (invalid !== undefined) reader.report(at('url'), invalid);
  if (typeof jwks === 'string' && invalidProvider(jwks) !== undefined)
    reader.report(at('jwks'), `"${printable(jwks)}" is not an address of keys: it must begin with https://.`);
  const audience = givenAudience ?? publicUrl;
  if (audience === undefined)
    reader.report(path, 'It is not known what tokens must be for: give "publicUrl", the address of this service.');
  const given = fields.algorithms;
  const algorithms = reader.textsOf(given, at('algorithms'), (text, where) =>
    ALGORITHMS.includes(text)
      ? text
      : reader.report(where, `"${printable(text)}" is not a signing algorithm. Use one of ${formatList(ALGORITHMS)}.`),
  );
  reader.refuseEmpty(given, at('algorithms'), 'The field "algorithms" is empty.');
  const { keysMaxAge } = fields;
  const ageMs = typeof keysMaxAge === 'string' ? (readDuration(keysMaxAge) ?? 0) : 0;
  if (keysMaxAge !== undefined && (ageMs < MIN_KEYS_MS || ageMs > MAX_KEYS_MS))
    reader.report(at('keysMaxAge'), 'The field "keysMaxAge" must be a time from 1m to 30d, such as 1d.');
  const issuer = {
    url,
    jwks,
    audience: audience ?? '',
    algorithms: given === undefined ? USUAL_ALGORITHMS : algorithms,
    ...(keysMaxAge !== undefined && { keysMaxAge: ageMs / SECOND }),
  };
  return { issuer, preset };
}

/** Reads which file has the public keys of an issuer, and holds that it does. */
function readKeyFile(
  reader: ConfigReader,
  value: Record<string, unknown>,
  path: DocumentPath,
): { file: string } | undefined {
  const file = reader.filePath(reader.knownFields(value, path, ['file']).file, [...path, 'file']);
  if (file === undefined) return undefined;
  try {
    readKeySet(file);
  } catch (error) {
    return reader.report([...path, 'file'], (error as Error).message);
  }
  return { file };
}

/** Reads what tokens must say; claims of claims stand in maps. */
function readWhen(reader: ConfigReader, value: unknown, path: DocumentPath, within: string[] = []): ClaimCondition[] {
  if (!isRecord(value)) {
    reader.report(path, 'The field "when" must be a map of claims to what they must be: a text, or a list of texts.');
    return [];
  }
  const claims = Object.entries(value);
  if (claims.length === 0 || claims.length > MAX_VALUES)
    reader.report(path, `A rule names from 1 to ${MAX_VALUES} claims, as otherwise it is met by any token.`);
  return claims.slice(0, MAX_VALUES).flatMap(([claim, given]): ClaimCondition[] => {
    const [at, claimPath] = [
      [...path, claim],
      [...within, claim],
    ];
    if (isRecord(given) && within.length < 4) return readWhen(reader, given, at, claimPath);
    const read = (text: string | undefined, where: DocumentPath) =>
      text?.trim() === '' || text?.includes('*')
        ? reader.report(
            where,
            `"${printable(text)}" is not a value of a claim: it is compared as it is, without patterns.`,
          )
        : text;
    const one = Array.isArray(given) ? undefined : read(reader.text(given, at), at);
    const values = Array.isArray(given) ? reader.textsOf(given, at, read) : one === undefined ? [] : [one];
    if (Array.isArray(given) && (given.length === 0 || given.length > MAX_VALUES))
      reader.report(at, `A claim has from 1 to ${MAX_VALUES} values.`);
    return [{ path: claimPath, values }];
  });
}

/** Holds that a rule names what nobody else can come to be called. */
function requireDemanded(
  reader: ConfigReader,
  when: readonly ClaimCondition[],
  preset: string | undefined,
  path: DocumentPath,
): void {
  if (preset === undefined) return;
  const named = new Set(when.map((condition) => condition.path.join('.')));
  const { demands } = PRESETS[preset]!;
  if (demands.some((claims) => claims.every((claim) => named.has(claim)))) return;
  const text = formatList(
    demands.map((claims) => formatList(claims)),
    'or',
  );
  reader.report(
    path,
    `A rule for ${preset} must name ${text}: what else its tokens say can be registered by somebody else one day.`,
  );
}
