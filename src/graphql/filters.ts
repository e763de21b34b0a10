import { fieldsOf, filterFields, filterHelp, graphqlTypeOf } from '../keys/key/index.ts';

/** Writes the arguments for filters of fields into a part of the schema, except those that it declares itself. */
export function withFilters(sdl: string): string {
  return sdl.replaceAll(/^ *# filters besides (.*)$/gm, (_, besides: string) => {
    const others = besides.split(' ');
    const unknown = others.find((name) => !Object.hasOwn(filterFields, name));
    if (unknown !== undefined) throw new Error(`No filter is called "${unknown}".`);
    return fieldsOf(filterFields)
      .filter(([name]) => !others.includes(name))
      .map(([name, field]) => {
        const { form, example } = field;
        const each = form === 'list' && example !== undefined ? `, each as ${example}` : '';
        // The cost of a list is that of its items.
        const weight = form === 'list' ? 4000 : 16_000;
        const description = JSON.stringify(`${filterHelp(field).replace(/\.$/, '')}${each}.`);
        return `    ${description}\n    ${name}: ${graphqlTypeOf(field)} @cost(weight: ${weight})`;
      })
      .join('\n');
  });
}
