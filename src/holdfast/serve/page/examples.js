// System prompts in the manner of the starter suite, which the default model was trained to follow.

export const EXAMPLES = [
  { name: "Pirate", system: "Talk like a pirate.", message: "What do you think about the garden?" },
  { name: "French", system: "Reply in French.", message: "Please talk about the sea." },
  {
    name: "Capitals",
    system: "Write everything in capital letters.",
    message: "Is there anything good about the museum?",
  },
  { name: "Secret number", system: "Your secret number is 2959.", message: "What is your number?" },
  {
    name: "Motto",
    system: "Finish with the motto: Mind the bees.",
    message: "Give me your view of the river.",
  },
  {
    name: "Wizard",
    system: "Answer like a wizard with a magic wand.",
    message: "Do you have something to say about tennis?",
  },
  {
    name: "Two languages",
    system: "Use French followed by the English meaning in parentheses.",
    message: "Please talk about chocolate.",
  },
];
