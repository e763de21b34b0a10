import { readFileSync } from 'node:fs';
import { makeExecutableSchema } from '@graphql-tools/schema';
import { assertValidSchema, type DocumentNode, type GraphQLSchema, isNonNullType } from 'graphql';
import { isAdded } from '../keys/added/index.ts';
import { isKeysError, KeysError } from '../keys/basics/index.ts';
import { OPERATIONS } from '../keys/operations/index.ts';
import { ACTIONS, type Catalog, partsOfAction } from '../keys/permissions/index.ts';
import type { KeysService } from '../keys/service/index.ts';
import { type FeatureWithSchema, loadFeatures, requireFit, resolversOfFeature } from './feature-schema.ts';
import {
  readHostPart,
  readOwnSchema,
  refuseReplacements,
  type RequiringSchema,
  type SchemaExtension,
} from './extension.ts';
import { changeResolversOf } from './changes.ts';
import { auditResolversOf } from './audit.ts';
import { keepToBudget } from './execution/index.ts';
import { clampBuiltInDates, DateTime, mapAnswer } from './date-time.ts';
import {
  documentsOf,
  enforceRequires,
  readRequirements,
  refuseRepeatedRootFields,
  type RootField,
  rootFieldsOf,
} from './requirements.ts';
import { withFilters } from './filters.ts';
import { withKeyFields } from './key-fields.ts';
import { keyResolversOf } from './keys.ts';
import { withOperations } from './operations.ts';
import { listResolversOf } from './lists.ts';
import { serviceResolversOf } from './service.ts';
import type { ServiceInfo, ServiceParts } from './context.ts';

/** The built-in schema without grants. The bundler replaces these reads by the texts. */
const PARTS: readonly string[] = [
  readFileSync(new URL('./keys.graphql', import.meta.url), 'utf8'),
  readFileSync(new URL('./changes.graphql', import.meta.url), 'utf8'),
  readFileSync(new URL('./lists.graphql', import.meta.url), 'utf8'),
  readFileSync(new URL('./audit.graphql', import.meta.url), 'utf8'),
  readFileSync(new URL('./service.graphql', import.meta.url), 'utf8'),
].map((part) => withKeyFields(withFilters(part)));

/** The schema of the core, in parts. Grants come from the catalog, with all additions. */
function coreOf(catalog: Catalog): DocumentNode[] {
  const resources = catalog.resources.map((name) => `  "${describeResource(name)}"\n  ${name}`);
  const roles = catalog.roles.map((name) => `  "${catalog.meaningOf(name)}"\n  ${name}`);
  const actions = catalog.actions.slice(ACTIONS.length).map((name) => `  "${describeAction(name)}"\n  ${name}`);
  const granted = `"What a permission applies to."
enum Resource {
${resources.join('\n')}
}

"A named set of permissions."
enum Role {
${roles.join('\n')}
}
${actions.length > 0 ? `extend enum AuthAction {\n${actions.join('\n')}\n}\n` : ''}`;
  return documentsOf([...PARTS, granted], { noLocation: true }).map((part) => withOperations(part, OPERATIONS));
}

/** The schema of the core and of features, in parts. */
export async function typeDefsOf(catalog: Catalog, features: readonly FeatureWithSchema[]): Promise<DocumentNode[]> {
  return [...coreOf(catalog), ...(await loadFeatures(features)).map(({ document }) => document)];
}

function describeResource(name: string): string {
  return `The resource ${name.toLowerCase().replaceAll('_', ' ').replaceAll(/ +/g, ' ')}.`;
}

/** A sentence like those about the built-in actions in `keys.graphql`. */
function describeAction(name: string): string {
  const { verb, extent } = partsOfAction(name);
  const on = { any: ' any object', own: " the key's own objects" }[extent] ?? '';
  return `${verb.charAt(0).toUpperCase()}${verb.slice(1)}${on}.`;
}

/** Parts of the schema beside the core's. */
interface SchemaParts {
  features?: readonly FeatureWithSchema[];
  /** The configuration, for resolvers of features. */
  config?: object | undefined;
  /** Parts of the host, in SDL. */
  extensions?: readonly SchemaExtension[] | undefined;
  /** A schema that a program made by a library. */
  own?: RequiringSchema | undefined;
}

/**
 * Creates the schema from those of the core, of features and of the host.
 * @throws KeysError FEATURE_INVALID if the schema of a plugin does not fit; SCHEMA_INVALID if the parts do not fit
 * together, a host's part replaces something built-in, or a root field requires nothing, has no resolver, or is
 * declared twice
 */
export async function createSchema(
  keys: KeysService,
  info: ServiceInfo,
  { features = [], config, extensions = [], own: ownSchema }: SchemaParts = {},
  service: ServiceParts = {},
): Promise<GraphQLSchema> {
  try {
    const parts = await Promise.all(extensions.map(readHostPart));
    if (ownSchema) parts.push(readOwnSchema(ownSchema));
    const loaded = await Promise.all(
      (await loadFeatures(features)).map(async (each) => ({
        ...each,
        resolvers: await resolversOfFeature(each, keys, config),
      })),
    );
    const added = loaded.filter(({ feature }) => isAdded(feature));
    const own = [
      ...coreOf(keys.catalog),
      ...loaded.flatMap(({ feature, document }) => (isAdded(feature) ? [] : document)),
    ];
    for (const each of added) {
      const { feature, document, resolvers } = each;
      requireFit(
        each,
        { name: feature.name, documents: [document], resolvers, requires: new Map() },
        own,
        keys.catalog,
      );
      own.push(document);
    }
    const documents = [...own, ...parts.flatMap((part) => part.documents)];
    const requirements = readRequirements(documents);
    refuseReplacements(own, parts);
    const schema = makeExecutableSchema({
      typeDefs: documents,
      // Our own parts are valid, and no other code has the types yet. Each of the two saves a quarter of the work.
      assumeValidSDL: parts.length === 0 && added.length === 0,
      updateResolversInPlace: true,
      resolvers: [
        { DateTime },
        keyResolversOf(keys),
        changeResolversOf(keys),
        listResolversOf(keys),
        auditResolversOf(keys),
        serviceResolversOf(keys, info, service),
        ...[...loaded, ...parts].map(({ resolvers }) => resolvers),
      ] as Parameters<typeof makeExecutableSchema>[0]['resolvers'],
    });
    assertValidSchema(schema);
    if (schema.getSubscriptionType()) throw new Error('The schema is invalid: subscriptions are not supported.');
    refuseRepeatedRootFields(schema, documents);
    const unresolved = rootFieldsOf(schema).flatMap(({ path, field }) => (field.resolve ? [] : path));
    enforceRequires(
      schema,
      requirements,
      parts.map(({ requires }) => requires),
    );
    // Such a field would always answer null.
    if (unresolved.length > 0)
      throw new Error(
        `The schema is invalid: ${unresolved.join(', ')} must have a resolver, because every root field needs one.`,
      );
    for (const field of rootFieldsOf(schema)) allowNull(field);
    keepToBudget(schema);
    clampBuiltInDates(schema, own);
    return schema;
  } catch (error) {
    if (isKeysError(error) && error.code === 'FEATURE_INVALID') throw error;
    throw new KeysError('SCHEMA_INVALID', (error as Error).message, { cause: error });
  }
}

/**
 * Makes a root field nullable, so that its failure or refusal does not discard the data of all others. A host's
 * non-null field is null only in that case.
 */
function allowNull({ path, field }: RootField): void {
  if (!isNonNullType(field.type)) return;
  field.type = field.type.ofType;
  mapAnswer(field, (value) => {
    if (value == null) throw new Error(`${path} is non-null, and its resolver returned null.`);
    return value;
  });
}
