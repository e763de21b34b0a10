import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isRecord } from '../keys/basics/index.ts';
import { packageFolder } from '../version.ts';
import type { AddedSection } from './added-section.ts';
import { allSections } from './read-config.ts';

/** The JSON Schema that the package contains. */
interface PublishedSchema {
  readonly properties: Readonly<Record<string, object>>;
}

/**
 * The JSON Schema (draft 2020-12) of the configuration, with the sections of plugins and of available features.
 * @throws KeysError FEATURE_INVALID
 */
export async function configSchema(): Promise<object> {
  const published = JSON.parse(
    readFileSync(join(packageFolder(), 'schemas', 'config.schema.json'), 'utf8'),
  ) as PublishedSchema;
  const properties: Record<string, object> = { $schema: published.properties['$schema']! };
  for (const [name, section] of await allSections())
    properties[name] = 'feature' in section ? schemaOfAdded(name, section) : published.properties[name]!;
  return { ...published, properties };
}

/** Its own `$id` lets references within the section resolve there. A section without a JSON Schema takes any value. */
function schemaOfAdded(name: string, { description, schema }: AddedSection): object {
  let own: unknown;
  try {
    own = schema['~standard'].jsonSchema?.input({ target: 'draft-2020-12' });
  } catch {
    // The library cannot express this schema.
  }
  return { $id: `urn:svc-api:section:${name}`, description, ...(isRecord(own) && own) };
}
