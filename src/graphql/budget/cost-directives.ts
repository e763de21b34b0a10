/** The directives from which the cost of a request follows (after IBM's GraphQL Cost Directives specification). */
export const COST_TYPE_DEFS = `
"""
What a field costs; 1 without it. On a field with slicing arguments it counts for each item of the page. On an
argument, it is added if the argument is given, for a list once per item; of several arguments, the costliest counts.
"""
directive @cost(
  "The cost."
  weight: Int!
) on FIELD_DEFINITION | ARGUMENT_DEFINITION

"""
How many items a list has, for the cost of a request. A list without it has as many as the page that it belongs to,
otherwise 10.
"""
directive @listSize(
  "The usual number; with slicing arguments, the largest number."
  assumedSize: Int!
  "The arguments that set the size of the page."
  slicingArguments: [String!] = []
) on FIELD_DEFINITION
`;
