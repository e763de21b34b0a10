import * as v from 'valibot';
import { type DocumentIssue, isRecord } from '../keys/basics/index.ts';
import { createCatalog, type HostResource } from '../keys/permissions/index.ts';
import { allFeatures } from '../features/index.ts';
import type { Config } from './config.ts';
import { defaultConfig } from './default-config.ts';
import { located, readBy, unknownFields } from './schema.ts';
import { type Section, section } from './section.ts';
import { SECTIONS } from './sections.ts';
import { validResources, validRoles } from './sections/access.ts';

/** The location of the JSON Schema, for editors. */
const SCHEMA = section({ description: '', schema: () => v.string(), into: () => ({}) });

/** The sections of the core, then those of features, by their names. */
export async function allSections(): Promise<ReadonlyMap<string, Section>> {
  const ofFeatures = allFeatures().flatMap(({ config }) => Object.entries(config?.sections ?? {}));
  const read = ofFeatures.map(async ([name, load]) => [name, await load()] as const);
  return new Map([...Object.entries(SECTIONS), ...(await Promise.all(read))]);
}

interface ConfigContext {
  /** The absolute path of the file. */
  file: string;
  /** Resources of the host, which roles and routes can name as well. */
  resources: readonly HostResource[];
  /** Called with failed route expectations. By default they are errors. */
  onUnmet?: ((issues: readonly DocumentIssue[]) => void) | undefined;
}

/** Reads a parsed file. An empty one says nothing. @returns the configuration, or all that is wrong with the file */
export async function readConfig(
  value: unknown,
  { file, resources: ofHost, onUnmet }: ConfigContext,
): Promise<{ config: Config } | { issues: readonly DocumentIssue[] }> {
  const document = value ?? {};
  if (!isRecord(document)) return { issues: [{ path: [], message: NO_MAP }] };
  const sections = new Map([['$schema', SCHEMA], ...(await allSections())]);
  const { unknown, meant, issues: ofFields } = unknownFields(document, [...sections.keys()]);
  const issues = ofFields.map((issue) => located(issue));
  // A misspelt field is read as the one that was meant, so that nothing else is missing.
  const misspelt = unknown.flatMap((field, index) => {
    const name = meant[index];
    return name === undefined || Object.hasOwn(document, name) ? [] : [[name, document[field]] as const];
  });
  const given: Record<string, unknown> = { ...document, ...Object.fromEntries(misspelt) };
  const declaredIn = 'this file';
  const own = [...ofHost, ...validResources(given['resources'])];
  const builtinResources = given['builtinResources'] === 'hidden' ? 'hidden' : 'shown';
  const known = createCatalog({ resources: own, builtinResources, declaredIn });
  const roles = validRoles(given['roles'], known);
  const catalog = createCatalog({ resources: own, builtinResources, roles, declaredIn });
  const [config, unmet]: [Partial<Config>, DocumentIssue[]] = [{}, []];
  const context = { file, given, catalog, read: config, issues, unmet };
  for (const [name, { schema, into }] of sections) {
    if (given[name] === undefined) continue;
    const result = readBy(schema(context), given[name], [name]);
    if ('output' in result) Object.assign(config, into(result.output as never));
    else if (!misspelt.some(([field]) => field === name)) issues.push(...result.issues);
  }
  if (!onUnmet) issues.push(...unmet);
  else if (unmet.length > 0) onUnmet(unmet);
  return issues.length > 0 ? { issues } : { config: { ...defaultConfig(), file, ...config } };
}

const NO_MAP = 'The configuration must be a map of fields, such as "resources: [WIKI]".';
