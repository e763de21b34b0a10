import * as v from 'valibot';
import { isAdded, workOf } from '../keys/added/index.ts';
import { type DocumentIssue, isRecord } from '../keys/basics/index.ts';
import { createCatalog, type OwnNames, vocabularyOf } from '../keys/permissions/index.ts';
import { allFeatures } from '../features/index.ts';
import { type AddedSection, checkAddedSection, readAddedSection } from './added-section.ts';
import type { Config } from './config.ts';
import { defaultConfig } from './default-config.ts';
import { located, readBy, unknownFields } from './schema.ts';
import { type Section, section, type SectionContext } from './section.ts';
import { SECTIONS } from './sections.ts';
import { validActions, validResources, validRoles } from './sections/access.ts';

/** The location of the JSON Schema, for editors. */
const SCHEMA = section({ description: '', schema: () => v.string(), into: () => ({}) });

/** A section of a plugin, and the name of its feature. */
interface FromPlugin extends AddedSection {
  readonly feature: string;
}

/**
 * The sections of the core, then those of features, by name.
 * @throws KeysError FEATURE_INVALID, which names a plugin and its section
 */
export async function allSections(): Promise<ReadonlyMap<string, Section | FromPlugin>> {
  const sections = new Map<string, Section | FromPlugin>(Object.entries(SECTIONS));
  for (const feature of allFeatures())
    for (const [name, load] of Object.entries(feature.config?.sections ?? {})) {
      const section = await workOf(feature, 'config', load);
      if (!isAdded(feature)) sections.set(name, section as Section);
      else {
        checkAddedSection(feature.name, name, section);
        sections.set(name, { ...(section as AddedSection), feature: feature.name });
      }
    }
  return sections;
}

interface ConfigContext {
  /** The absolute path of the file. */
  file: string;
  /** Resources and actions of the host, which roles and routes can name as well. */
  ofHost: OwnNames;
  lineOf?: SectionContext['lineOf'];
  /** Called with failed route expectations. By default they are errors. */
  onUnmet?: ((issues: readonly DocumentIssue[]) => void) | undefined;
}

/** Reads a parsed file, which can be empty. @returns the configuration, or all problems with the file */
export async function readConfig(
  value: unknown,
  { file, ofHost, lineOf, onUnmet }: ConfigContext,
): Promise<{ config: Config } | { issues: readonly DocumentIssue[] }> {
  const document = value ?? {};
  if (!isRecord(document)) return { issues: [{ path: [], message: NO_MAP }] };
  const sections = new Map([['$schema', SCHEMA], ...(await allSections())]);
  const fields = [...sections.keys()];
  const { unknown, meant, issues: ofFields } = unknownFields(document, fields, PLUGINS);
  const issues = ofFields.map((issue) => located(issue));
  // A misspelt field is read as the one that was meant, so that it is not reported as missing as well.
  const misspelt = unknown.flatMap((field, index) => {
    const name = meant[index];
    return name === undefined || Object.hasOwn(document, name) ? [] : [[name, document[field]] as const];
  });
  const given: Record<string, unknown> = { ...document, ...Object.fromEntries(misspelt) };
  const declaredIn = 'this file';
  const own = vocabularyOf(ofHost, {
    resources: validResources(given['resources']),
    actions: validActions(given['actions']),
  });
  const builtinResources = given['builtinResources'] === 'hidden' ? 'hidden' : 'shown';
  const known = createCatalog({ ...own, builtinResources, declaredIn });
  const roles = validRoles(given['roles'], known);
  const catalog = createCatalog({ ...own, builtinResources, roles, declaredIn });
  const [config, unmet]: [Partial<Config>, DocumentIssue[]] = [{}, []];
  const context = { file, lineOf, given, catalog, read: config, issues, unmet };
  const added: Record<string, unknown> = {};
  for (const [name, section] of sections) {
    const value = given[name];
    if (value === undefined) continue;
    const isOfPlugin = 'feature' in section;
    const result = isOfPlugin
      ? await readAddedSection(section.feature, name, { schema: section.schema, value })
      : readBy(section.schema(context), value, [name]);
    if ('output' in result)
      if (isOfPlugin) added[name] = result.output;
      else Object.assign(config, section.into(result.output as never));
    else if (!misspelt.some(([field]) => field === name)) issues.push(...result.issues);
  }
  if (!onUnmet) issues.push(...unmet);
  else if (unmet.length > 0) onUnmet(unmet);
  return issues.length > 0 ? { issues } : { config: { ...defaultConfig(), file, ...config, added } };
}

const PLUGINS =
  ' Remove this field. If it belongs to a plugin, you can also install the plugin for this user, or add it to your program with addFeatures.';
const NO_MAP = 'The configuration must be a map of fields, such as "resources: [WIKI]".';
