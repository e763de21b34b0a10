import { makeExecutableSchema } from '@graphql-tools/schema';
import { getNullableType, type GraphQLSchema } from 'graphql';
import { KeysError } from '../keys/errors.ts';
import type { KeysService } from '../keys/service.ts';
import type { SchemaExtension, ServiceInfo } from './extension.ts';
import { enforceRequires, rootFieldsOf } from './requires.ts';
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
 * @throws KeysError SCHEMA_INVALID when the parts do not fit, or a root field carries no `@requires`
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
    const build = () => {
      const schema = makeExecutableSchema({
        typeDefs: [typeDefsOf(keys.catalog), ...extensions.flatMap(({ typeDefs }) => typeDefs)],
        resolvers: [resolversOf(keys, info), ...hostResolvers] as never,
      });
      if (schema.getSubscriptionType()) throw new Error('The schema is refused: subscriptions are not served.');
      enforceRequires(schema);
      return schema;
    };
    const executed = build();
    for (const { field } of rootFieldsOf(executed)) field.type = getNullableType(field.type);
    return { published: build(), executed };
  } catch (error) {
    throw new KeysError('SCHEMA_INVALID', (error as Error).message, { cause: error });
  }
}
