import {
  type ASTNode,
  type DirectiveNode,
  type DocumentNode,
  type FieldDefinitionNode,
  Kind,
  parse,
  print,
  visit,
} from 'graphql';

/** The `@requires` of each field that has one, by its path such as `Query.me`. */
export type Requirements = ReadonlyMap<string, DirectiveNode>;

/** The directives of this package, which no other part of a schema may declare anew. */
const OWN_DIRECTIVES: ReadonlySet<string> = new Set(['requires', 'cost', 'listSize']);
const FIELD_OWNERS: ReadonlySet<string> = new Set<string>([
  Kind.OBJECT_TYPE_DEFINITION,
  Kind.OBJECT_TYPE_EXTENSION,
  Kind.INTERFACE_TYPE_DEFINITION,
  Kind.INTERFACE_TYPE_EXTENSION,
]);

/** The parts of a schema, parsed; empty ones are left out. */
export function documentsOf(parts: readonly (string | DocumentNode)[]): DocumentNode[] {
  return parts.filter((part) => part !== '').map((part) => (typeof part === 'string' ? parse(part) : part));
}

/**
 * Reads every `@requires` in the parts of a schema. The parts are read, not the schema that is made of them: merging
 * them and attaching resolvers may lose directives.
 * @throws Error that names the place where a `@requires` could not be enforced
 */
export function readRequirements(documents: readonly DocumentNode[]): Requirements {
  refuseRedeclaredDirectives(documents);
  const found = new Map<string, DirectiveNode>();
  const declared = new Map<string, string>();
  const contradicted = new Set<string>();
  for (const document of documents) {
    visit(document, {
      Directive: (directive, _key, _parent, _path, ancestors) => {
        if (directive.name.value === 'requires') refuseElsewhere(ancestors.filter(isNode));
      },
      FieldDefinition: (field, _key, _parent, _path, ancestors) => {
        const path = `${nameOf(ancestors.findLast(isNode)!)}.${field.name.value}`;
        const text = requiresOf(field).map(print).join(' ');
        if ((declared.get(path) ?? text) !== text) contradicted.add(path);
        declared.set(path, text);
        for (const directive of requiresOf(field)) found.set(path, directive);
      },
    });
  }
  if (contradicted.size === 0) return found;
  throw new Error(`The schema is invalid: ${[...contradicted].join(', ')} must be declared only once.`);
}

function requiresOf({ directives = [] }: FieldDefinitionNode): DirectiveNode[] {
  return directives.filter(({ name }) => name.value === 'requires');
}

function refuseRedeclaredDirectives(documents: readonly DocumentNode[]): void {
  const names = documents
    .flatMap(({ definitions }) => definitions)
    .flatMap((definition) => (definition.kind === Kind.DIRECTIVE_DEFINITION ? definition.name.value : []))
    .filter((name) => OWN_DIRECTIVES.has(name));
  const repeated = names.find((name, index) => names.indexOf(name) !== index);
  if (repeated !== undefined) throw new Error(`The schema is invalid: @${repeated} must not be declared again.`);
}

/** Only the fields of object types and interfaces are resolved. */
function refuseElsewhere(ancestors: readonly ASTNode[]): void {
  const [place, owner] = [ancestors.at(-1), ancestors.at(-2)];
  if (place?.kind === Kind.FIELD_DEFINITION && owner && FIELD_OWNERS.has(owner.kind)) return;
  const path = ancestors.map(nameOf).filter(Boolean).join('.') || 'the schema';
  throw new Error(`The schema is invalid: @requires on ${path} cannot be enforced; it belongs on a field.`);
}

function isNode(value: unknown): value is ASTNode {
  return typeof value === 'object' && value !== null && 'kind' in value;
}

function nameOf(node: ASTNode): string {
  return 'name' in node && node.name && 'value' in node.name ? node.name.value : '';
}
