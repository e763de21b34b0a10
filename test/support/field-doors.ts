import { parse, visit } from 'graphql';

/** Where a field that describes a key appears, as `doorsOf` names it. */
export const FIELD_DOORS = [
  'flag of apikey',
  'flag of apikey:create',
  'flag of apikey:update',
  'GraphQL: ApiKey',
  'GraphQL: ApiKeyPreview',
  'GraphQL: CreateApiKeyInput',
  'GraphQL: DeclaredApiKeyInput',
  'GraphQL: ManyKeysUpdate',
  'GraphQL: UpdateApiKeyInput',
  'JSON Schema: keys/$defs/key',
] as const;

/** Where a field also appears if keys are filtered by it. In `update`, the flag that filters has another name. */
export const FILTER_DOORS = [
  'flag of apikey:delete',
  'flag of apikey:disable',
  'flag of apikey:list',
  'GraphQL: Query.apiKeyList',
  'GraphQL: Query.apiKeys',
] as const;

/** The documents with a key in docs/json.md. */
export const DOCUMENT_DOORS = ['KEY', 'create --dry-run', 'export'] as const;

/** The descriptions of the program. */
export interface Descriptions {
  readonly manifest: { readonly commands: Readonly<Record<string, { readonly flags?: object }>> };
  /** The GraphQL schema. */
  readonly graphql: string;
  /** JSON Schemas by their names. */
  readonly schemas: Readonly<Record<string, object>>;
}

/** All places where these descriptions have a field, in order. @param flag its flag, without dashes */
export function doorsOf(name: string, flag: string, { manifest, graphql, schemas }: Descriptions): string[] {
  const commands = Object.entries(manifest.commands).filter(([, { flags = {} }]) => Object.hasOwn(flags, flag));
  return [
    ...commands.map(([command]) => `flag of ${command}`),
    ...placesInGraphQL(name, graphql).map((place) => `GraphQL: ${place}`),
    ...Object.entries(schemas).flatMap(([schema, value]) =>
      placesInSchema(name, value).map((place) => `JSON Schema: ${schema}${place}`),
    ),
  ].toSorted();
}

/** Types with a field of this name, and root fields with such an argument. */
function placesInGraphQL(name: string, schema: string): string[] {
  const places: string[] = [];
  const typeOf = (node: { readonly name: { readonly value: string }; readonly fields?: readonly Named[] }) => {
    if (node.fields?.some((field) => field.name.value === name)) places.push(node.name.value);
    for (const field of node.fields ?? [])
      if (field.arguments?.some((argument) => argument.name.value === name))
        places.push(`${node.name.value}.${field.name.value}`);
  };
  visit(parse(schema), {
    ObjectTypeDefinition: typeOf,
    ObjectTypeExtension: typeOf,
    InputObjectTypeDefinition: typeOf,
    InputObjectTypeExtension: typeOf,
  });
  return places;
}

interface Named {
  readonly name: { readonly value: string };
  readonly arguments?: readonly Named[];
}

/** Pointers to objects of a JSON Schema that have a property of this name. */
function placesInSchema(name: string, schema: unknown, pointer = ''): string[] {
  if (typeof schema !== 'object' || schema === null) return [];
  const { properties } = schema as { properties?: object };
  const here = properties && Object.hasOwn(properties, name) ? [pointer] : [];
  return [
    ...here,
    ...Object.entries(schema).flatMap(([key, value]) => placesInSchema(name, value, `${pointer}/${key}`)),
  ];
}

/** The titles of the documents in docs/json.md that have a field, in order. */
export function documentsWith(name: string, page: string): string[] {
  const [commands = '', objects = ''] = page.split('\n## Objects\n');
  const sections = commands.split(/^\/\/ (?=[a-z-])/m).slice(1);
  const titled = sections.map((section) => [/^[^:;,(\n]*/.exec(section)![0].trim(), section] as const);
  const titles = Array.from(objects.matchAll(/^An? `([A-Z]+)`/gm), ([, title]) => title!);
  const blocks = objects.split('```text\n').slice(1);
  const named = blocks.map((text, at) => [titles[at]!, text.split('```')[0]!] as const);
  return [...titled, ...named].flatMap(([title, text]) => (text.includes(`"${name}"`) ? [title] : [])).toSorted();
}
