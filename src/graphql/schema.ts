import { makeExecutableSchema } from '@graphql-tools/schema';
import { defaultFieldResolver, type GraphQLSchema, isNonNullType } from 'graphql';
import { KeysError } from '../keys/errors.ts';
import type { KeysService } from '../keys/service.ts';
import { applyResolversOf } from './apply-resolvers.ts';
import { APPLY_TYPE_DEFS } from './apply-type-defs.ts';
import { auditResolversOf } from './audit-resolvers.ts';
import { AUDIT_TYPE_DEFS } from './audit-type-defs.ts';
import type { SchemaExtension, ServiceInfo } from './extension.ts';
import { enforceRequires, refuseRepeatedRootFields, type RootField, rootFieldsOf } from './requires.ts';
import { resolversOf } from './resolvers.ts';
import { typeDefsOf } from './type-defs.ts';

/** One schema in two forms. */
export interface ServedSchema {
  /** As it is published: what introspection shows. */
  published: GraphQLSchema;
  /**
   * As it is run: its root fields may be null. A published root field is never null unless the reply has an error at its
   * path; were it non-null here too, one field that is refused would take the answers of all others with it.
   */
  executed: GraphQLSchema;
}

/**
 * Makes the schema: the own part and those of the host, merged.
 * @throws KeysError SCHEMA_INVALID when the parts do not fit, or a root field carries no `@requires` or is declared twice
 */
export async function createSchema(
  keys: KeysService,
  info: ServiceInfo,
  extensions: readonly SchemaExtension[] = [],
): Promise<ServedSchema> {
  try {
    const hostResolvers = await Promise.all(
      extensions.map(async ({ resolvers }) => (typeof resolvers === 'function' ? resolvers() : resolvers)),
    );
    const typeDefs = [
      typeDefsOf(keys.catalog),
      AUDIT_TYPE_DEFS,
      APPLY_TYPE_DEFS,
      ...extensions.flatMap((extension) => extension.typeDefs),
    ];
    const build = () => {
      const schema = makeExecutableSchema({
        typeDefs,
        resolvers: [resolversOf(keys, info), auditResolversOf(keys), applyResolversOf(keys), ...hostResolvers] as never,
      });
      if (schema.getSubscriptionType()) throw new Error('The schema is refused: subscriptions are not served.');
      refuseRepeatedRootFields(schema, typeDefs);
      enforceRequires(schema);
      return schema;
    };
    const executed = build();
    for (const field of rootFieldsOf(executed)) allowNull(field);
    return { published: build(), executed };
  } catch (error) {
    throw new KeysError('SCHEMA_INVALID', (error as Error).message, { cause: error });
  }
}

/** Lets a non-null root field be null where it fails, and only there. */
function allowNull({ path, field }: RootField): void {
  if (!isNonNullType(field.type)) return;
  field.type = field.type.ofType;
  const resolve = field.resolve ?? defaultFieldResolver;
  const present = (value: unknown) => {
    if (value == null) throw new Error(`${path} is non-null, and its resolver returned null.`);
    return value;
  };
  field.resolve = (...args) => {
    const value: unknown = resolve(...args);
    return value instanceof Promise ? value.then(present) : present(value);
  };
}
