import { buildASTSchema, concatAST, type DocumentNode, parse } from 'graphql';
import { invalidFeature, isAdded, workOf } from '../keys/added/index.ts';
import { isOnKeys, type Operations, perform } from '../keys/operations/index.ts';
import type { Catalog } from '../keys/permissions/index.ts';
import type { KeysService } from '../keys/service/index.ts';
import type { GraphQLContext } from './context.ts';
import { type HostPart, refuseReplacements } from './extension.ts';
import { withFilters } from './filters.ts';
import { withKeyFields } from './key-fields.ts';
import { withOperations } from './operations.ts';
import type { Resolvers } from './own-schema.ts';

/** The schema of a feature. */
export interface FeatureSchema<Config = never> {
  /** SDL. Its root fields have no description and no `@requires`: both come from their operations. */
  readonly typeDefs: string;
  /**
   * Its resolvers, or a function that makes them. A root field without one performs its operation with its arguments.
   */
  readonly resolvers?: object | ((keys: KeysService, config: Config) => object);
}

/** The schema-related members of a feature. */
export interface FeatureWithSchema {
  readonly name: string;
  readonly operations?: Operations;
  readonly schema?: () => Promise<FeatureSchema>;
}

/** A feature with its schema loaded. */
export interface LoadedFeature {
  readonly feature: FeatureWithSchema;
  readonly schema: FeatureSchema;
  readonly document: DocumentNode;
}

/** Loads the schemas of features. @throws KeysError FEATURE_INVALID */
export async function loadFeatures(features: readonly FeatureWithSchema[]): Promise<LoadedFeature[]> {
  const withSchema = features.flatMap((feature) => (feature.schema ? { feature, load: feature.schema } : []));
  return Promise.all(
    withSchema.map(({ feature, load }) =>
      workOf(feature, 'schema', async () => {
        const schema: FeatureSchema | undefined = await load();
        if (typeof schema?.typeDefs !== 'string') throw new Error('It must return an object with "typeDefs".');
        const text = isAdded(feature) ? schema.typeDefs : withKeyFields(withFilters(schema.typeDefs));
        const document = withOperations(parse(text, { noLocation: true }), feature.operations ?? {});
        return { feature, schema, document };
      }),
    ),
  );
}

/** The resolvers of a feature. @throws KeysError FEATURE_INVALID */
export async function resolversOfFeature(
  { feature, schema }: LoadedFeature,
  keys: KeysService,
  config: unknown,
): Promise<Resolvers> {
  const { resolvers = {} } = schema;
  const own = await workOf(feature, 'schema', () => {
    const made: unknown = typeof resolvers === 'function' ? resolvers(keys, config) : resolvers;
    if (typeof made !== 'object' || made === null)
      throw new Error('"resolvers" must be an object, or a function that returns one.');
    return made as Record<string, object>;
  });
  const given = { ...own };
  for (const [field, operation] of Object.entries(feature.operations ?? {}))
    if (isOnKeys(operation) && !Object.hasOwn(own[operation.root] ?? {}, field))
      given[operation.root] = {
        [field]: (_: unknown, args: object, { principal }: GraphQLContext) => perform(operation, keys, args, principal),
        ...given[operation.root],
      };
  return given;
}

/**
 * Refuses a plugin's feature with a conflicting schema: one that replaces something, has a type or root field that
 * exists already, or has an operation without a root field.
 * @throws KeysError FEATURE_INVALID
 */
export function requireFit(
  { feature, document }: LoadedFeature,
  part: HostPart,
  own: readonly DocumentNode[],
  catalog: Catalog,
): void {
  const { name, operations = {} } = feature;
  const there = (root: string) =>
    document.definitions.flatMap((definition) =>
      'fields' in definition && definition.name.value === root
        ? (definition.fields ?? []).map((field) => field.name.value)
        : [],
    );
  for (const [each, { root, needs }] of Object.entries(operations)) {
    if (!there(root).includes(each))
      throw invalidFeature(name, `Its schema has no field "${root}.${each}" for its operation.`);
    if (!catalog.knows(needs))
      throw invalidFeature(name, `Its operation "${each}" needs ${needs}, which cannot be granted.`);
  }
  try {
    refuseReplacements(own, [part]);
    buildASTSchema(concatAST([...own, document]));
  } catch (error) {
    throw invalidFeature(name, (error as Error).message, error);
  }
}
