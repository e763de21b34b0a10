/** How many values are remembered, and how long their texts may be: what most requests send is short, and the same. */
const [MAX_ENTRIES, MAX_LENGTH] = [100, 200];

/** A function of a text that remembers its values, for texts of which few differ. What it throws is not remembered. */
export function remembered<Value>(compute: (text: string) => Value): (text: string) => Value {
  const values = new Map<string, Value>();
  return (text) => {
    const known = values.get(text);
    if (known !== undefined) return known;
    const value = compute(text);
    // Somebody who sends ever new texts makes all forgotten, which costs nobody much.
    if (values.size >= MAX_ENTRIES) values.clear();
    if (text.length <= MAX_LENGTH) values.set(text, value);
    return value;
  };
}
