{# A relation that stands for a sample of itself:

     select avg(price) from {{ qbeast_sample(ref('orders'), 0.01) }}

   Without a fraction the variable `qbeast_sample` gives it. #}
{% macro qbeast_sample(relation, fraction=none) %}
  {% if not execute %}
    {{ return(relation) }}
  {% endif %}
  {% set asked = fraction if fraction is not none else var('qbeast_sample', none) %}
  {% if asked is none %}
    {% do exceptions.raise_compiler_error(
        "qbeast_sample() needs a fraction: qbeast_sample(" ~ relation ~ ", 0.01), or run dbt with "
        ~ "--vars '{qbeast_sample: 0.01}'") %}
  {% endif %}
  {{ return(adapter.qbeast_sampled(relation, asked)) }}
{% endmacro %}
